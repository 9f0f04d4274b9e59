"""Lengths and cosines of vectors that are the rows of a matrix, such as updates."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.types import Params

Rows = Float[Array, "row value"]
PerRow = Float[Array, " row"]

_NOTHING_NEW = 1e-4
"""Share of a direction, beyond those before it, that is taken for rounding."""


def lengths(rows: Rows) -> PerRow:
    """Euclidean length of each row."""
    return jnp.sqrt(jnp.sum(rows**2, axis=1))


def cosines(rows: Rows, others: Rows) -> PerRow:
    """Cosine of each row with its counterpart, or with the only one there is; 0 where either has no length."""
    product = lengths(rows) * lengths(others)
    return jnp.where(product > 0.0, jnp.sum(rows * others, axis=1) / jnp.where(product > 0.0, product, 1.0), 0.0)


def without_span(vector: Params, directions: tuple[Params, ...]) -> Params:
    """A vector without its part in the span of the directions."""
    units: list[Params] = []
    for direction in directions:
        rest = _less(direction, units)
        length, before = jnp.sqrt(jnp.sum(rest**2)), jnp.sqrt(jnp.sum(direction**2))
        new = length > _NOTHING_NEW * before
        units.append(jnp.where(new, rest / jnp.where(new, length, 1.0), 0.0))
    return _less(vector, units)


def _less(vector: Params, units: list[Params]) -> Params:
    for unit in units:
        vector = vector - (vector @ unit) * unit
    return vector
