"""Clipping: the bound on one contribution, and with it the sensitivity that a release may claim."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.types import FlagPerDevice, Scalar, UpdatePerDevice

MARGIN = 1e-6
"""Share of the bound kept free for rounding: double precision errs by less than 1e-12 of a length or a sum, a factor
in single precision by 1e-7."""


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

    The count is public. A vector with anything that is not finite counts as zero. Lengths and the sum are in double
    precision: in single precision, a million vectors would add up to what no bound holds for.
    """
    exact = vectors.astype(jnp.float64)
    factor = jnp.where(taken, clip_factor(jnp.sqrt(jnp.sum(exact**2, axis=1)), bound), 0.0)[:, None]
    count = jnp.maximum(jnp.sum(taken), 1).astype(jnp.float64)
    # As one reduction, into which XLA draws the conversion: a matrix product would need all vectors in double.
    total = jnp.sum(jnp.where(factor > 0.0, factor * exact, 0.0), axis=0)
    return Clipped(value=total / count, sensitivity=bound / count)
