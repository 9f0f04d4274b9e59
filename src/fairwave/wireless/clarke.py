"""Fading that is correlated over time, after Clarke: many waves of equal strength from all around a moving device."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.types import Key, Scalar

Field = Float[Array, " part"]
"""Real and imaginary part, each of mean square 1."""

NUM_WAVES = 64
"""The law of a sum of waves differs from the Gaussian by about one part in four times their number."""


def scattered_field(key: Key, doppler_cycles: Scalar) -> Field:
    """The field at a device, at a time given in cycles of the largest Doppler shift.

    The waves, one from a random angle in each of equal sectors and with a random phase, belong to the key; over keys
    the autocorrelation is J0(2 pi * cycles) exactly, and every device's mean power over time is the same.
    """
    angle_draws, phase_draws = jax.random.uniform(key, (2, NUM_WAVES))
    angles = 2.0 * jnp.pi * (jnp.arange(NUM_WAVES) + angle_draws) / NUM_WAVES
    phases = 2.0 * jnp.pi * (doppler_cycles * jnp.cos(angles) + phase_draws)
    return jnp.stack([jnp.sum(jnp.cos(phases)), jnp.sum(jnp.sin(phases))]) * jnp.sqrt(2.0 / NUM_WAVES)
