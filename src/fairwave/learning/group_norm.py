"""Group normalisation: every sample by its own mean and variance, so that no record reaches another.

Wu, He, "Group Normalization", ECCV 2018. Batch normalisation would mix the records of a batch, whose gradients could
then not be bounded one by one.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

MOST_GROUPS = 4
LEAST_VARIANCE = 1e-5
"""Added to variances, so that a flat image is not divided by zero."""


def group_norm(
    values: Float[Array, "sample *place channel"], scale: Float[Array, " channel"], shift: Float[Array, " channel"]
) -> Float[Array, "sample *place channel"]:
    """Values less the mean of their sample and group of channels, by its standard deviation; scaled and shifted."""
    groups = num_groups(scale.shape[0])
    grouped = values.reshape(values.shape[0], -1, groups, scale.shape[0] // groups)
    centred = grouped - jnp.mean(grouped, axis=(1, 3), keepdims=True)
    variance = jnp.mean(centred**2, axis=(1, 3), keepdims=True)
    normal = centred * jax.lax.rsqrt(variance + LEAST_VARIANCE)
    own_scale, own_shift = (each.reshape(1, 1, groups, -1) for each in (scale, shift))
    return (normal * own_scale + own_shift).reshape(values.shape)


def num_groups(channels: int) -> int:
    """Groups of equal size that neighbouring channels form: four, or fewer where four do not divide the channels."""
    return math.gcd(channels, MOST_GROUPS)
