"""Noise at a trusted access point, which protects a device's whole data from all others.

The noise goes into the access point's own model, from which the next round starts. Were it only in what is sent, over
a clean model that is kept, every round's release would carry all earlier contributions again: the sensitivity of
round t would be t times that of the first.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.privacy.clipping import clipped_mean
from fairwave.privacy.noise import Source, noised
from fairwave.types import FlagPerDevice, Key, Params, PerDevice, Scalar, UpdatePerDevice


class CentralRelease(eqx.Module):
    """The next model, and what its noise is worth."""

    params: Params
    noise_std: Scalar
    """0 if nobody took part: nothing is released then."""
    sensitivity: Scalar


def central_release(
    params: Params,
    updates: UpdatePerDevice,
    taking_part: FlagPerDevice,
    key: Key,
    *,
    clip_norm: float,
    noise_multiplier: float,
    source: Source,
) -> CentralRelease:
    """The model moved by the mean of the clipped updates, and noised in proportion to what one of them can change."""
    mean = clipped_mean(updates, taking_part, clip_norm)
    std = jnp.where(jnp.any(taking_part), noise_multiplier * mean.sensitivity, 0.0)
    # Noise first: adding the mean to the model before would round it by the model's last digit.
    moved = params + noised(source, mean.value, std, key)
    return CentralRelease(moved.astype(params.dtype), std, mean.sensitivity)


def fill_up(own_std: Scalar, wanted_std: PerDevice) -> PerDevice:
    """Noise to add to a model that has some already, so that each copy has what is wanted, or at least its own."""
    return jnp.sqrt(jnp.maximum(wanted_std**2 - own_std**2, 0.0))
