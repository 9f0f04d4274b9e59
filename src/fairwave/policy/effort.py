"""How a device expects its deviation factor to answer to the energy it puts into computing.

beta1 is kept as its logarithm: a device that works for many times beta2 and still deviates infers a beta1 beyond what
a number can hold, and still has to plan.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Scalar

LOG_OF_ZERO = -1e305
"""Stands for the logarithm of 0: finite, and it stays far below every other after sums with exponents."""
_LARGEST_LOG = 700.0
"""Logarithms are cut here before `exp`, which leaves room for sums and products of a few results."""
_LARGEST_QUOTIENT = 1e300
SMALLEST = float(np.finfo(np.float64).tiny)
"""Smaller numbers count as 0: processors differ in what they make of them."""


class Effort(eqx.Module):
    """A device's estimate of the effort model."""

    log_scale: Scalar
    """Logarithm of beta1, the deviation expected without any work."""
    decay_j: Scalar
    """beta2: compute energy that divides the deviation by e."""

    @property
    def scale(self) -> Scalar:
        """beta1; infinite if no number can hold it."""
        return jnp.exp(self.log_scale)


def effort_model(scale: Scalar, decay_j: Scalar) -> Effort:
    """The effort model with this beta1, which may be 0, and this beta2."""
    return Effort(log_scale=finite_log(scale), decay_j=decay_j)


def expected_deviation(effort: Effort, compute_energy_j: Scalar) -> Scalar:
    """Deviation factor that the device expects for a compute energy; cut at e^700.

    Paper: Eq. (28).
    """
    return bounded_exp(effort.log_scale - energy_in_decays(compute_energy_j, effort.decay_j))


def marginal_gain(effort: Effort, compute_energy_j: Scalar) -> Scalar:
    """By how much the next joule of computing lowers the expected deviation, per joule; cut at e^700."""
    log_deviation = effort.log_scale - energy_in_decays(compute_energy_j, effort.decay_j)
    return bounded_exp(log_deviation - finite_log(effort.decay_j))


def energy_in_decays(compute_energy_j: Scalar, decay_j: Scalar) -> Scalar:
    """Compute energy over beta2, which is the exponent of the effort model; finite whatever they are."""
    return jnp.minimum(compute_energy_j / jnp.maximum(decay_j, SMALLEST), _LARGEST_QUOTIENT)


def finite_log(value: Scalar) -> Scalar:
    """Logarithm that is finite at 0 too."""
    positive = value >= SMALLEST
    return jnp.where(positive, jnp.log(jnp.where(positive, value, 1.0)), LOG_OF_ZERO)


def bounded_exp(log_value: Scalar) -> Scalar:
    """Exponential of a logarithm, cut at e^700."""
    return jnp.exp(jnp.minimum(log_value, _LARGEST_LOG))


def first_guess(values: DeviceValues) -> Effort:
    """What a device believes before its first round."""
    scale = jnp.asarray(values("effort_scale"), dtype=float)
    return effort_model(scale, jnp.asarray(values("effort_decay_j"), dtype=float))
