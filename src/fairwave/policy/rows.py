"""Lengths and cosines of vectors that are the rows of a matrix, such as updates."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

Rows = Float[Array, "row value"]
PerRow = Float[Array, " row"]


def lengths(rows: Rows) -> PerRow:
    """Euclidean length of each row."""
    return jnp.sqrt(jnp.sum(rows**2, axis=1))


def cosines(rows: Rows, others: Rows) -> PerRow:
    """Cosine of each row with its counterpart, or with the only one there is; 0 where either has no length."""
    product = lengths(rows) * lengths(others)
    return jnp.where(product > 0.0, jnp.sum(rows * others, axis=1) / jnp.where(product > 0.0, product, 1.0), 0.0)
