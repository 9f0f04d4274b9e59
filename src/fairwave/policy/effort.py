"""How a device expects its deviation factor to answer to the energy it puts into computing."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Scalar


class Effort(eqx.Module):
    """A device's estimate of the effort model."""

    scale: Scalar
    """beta1: deviation expected without any work."""
    decay_j: Scalar
    """beta2: compute energy that divides the deviation by e."""


def expected_deviation(effort: Effort, compute_energy_j: Scalar) -> Scalar:
    """Deviation factor that the device expects for a compute energy.

    Paper: Eq. (28).
    """
    return effort.scale * jnp.exp(-compute_energy_j / effort.decay_j)


def first_guess(values: DeviceValues) -> Effort:
    """What a device believes before its first round."""
    return Effort(
        scale=jnp.asarray(values("effort_scale"), dtype=float),
        decay_j=jnp.asarray(values("effort_decay_j"), dtype=float),
    )
