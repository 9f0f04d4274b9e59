"""Clipping: the bound on one contribution, and with it the sensitivity that a release may claim."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.types import FlagPerDevice, Scalar, UpdatePerDevice

MARGIN = 1e-4
"""Share of the bound kept free for the rounding of lengths and sums in single precision."""


SHORTEST = 1e-30
"""Length below which a vector needs no division."""


class Clipped(eqx.Module):
    """A sum of contributions, and by how much one of them can move it."""

    value: Float[Array, " parameter"]
    sensitivity: Scalar
    """L2 distance between the value with and without one contribution, at most."""


def clip_factor(length: Float[Array, "*any"], bound: float | Scalar) -> Float[Array, "*any"]:
    """What a vector of that length is multiplied by so that it is no longer than the bound.

    0 where the length is not finite: such a vector is worth nothing and has to be dropped, not multiplied.
    """
    usable = jnp.isfinite(length)
    safe = jnp.where(usable, jnp.maximum(length, SHORTEST), 1.0)
    return jnp.where(usable, jnp.minimum(1.0, bound * (1.0 - MARGIN) / safe), 0.0).astype(length.dtype)


def clipped_mean(vectors: UpdatePerDevice, taken: FlagPerDevice, bound: float) -> Clipped:
    """Mean of the taken vectors, each clipped to the bound; replacing one by nothing moves it by bound over count.

    The count is public. A vector with anything that is not finite counts as zero.
    """
    factor = clip_factor(jnp.sqrt(jnp.sum(vectors**2, axis=1)), bound)
    usable = jnp.where(factor[:, None] > 0.0, vectors, 0.0)
    count = jnp.maximum(jnp.sum(taken), 1).astype(vectors.dtype)
    weight = jnp.where(taken, factor, 0.0) / count
    return Clipped(value=weight @ usable, sensitivity=bound / count)
