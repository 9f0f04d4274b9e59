"""How a device expects its deviation factor to answer to the energy it puts into computing.

beta1 is kept as its logarithm: a device that works for many times beta2 and still deviates infers a beta1 that a
number can hardly hold, or cannot. Its choice is the best all the same. Its utility contains beta1, and a run that would
have to store an infinite one is refused.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Scalar

LOG_OF_ZERO = -1e30
"""Stands for the logarithm of 0: finite, in single precision too, and far below every other sum of logarithms."""
LARGEST_EXPONENT = 1e25
"""Exponents are cut here, far beyond those of any scenario. From 1e16 on, the logarithm of a deviation is lost in the
rounding of the exponent that it is added to."""


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
    """Deviation factor that the device expects for a compute energy; cut below what a number can hold.

    Paper: Eq. (28).
    """
    return bounded_exp(effort.log_scale - energy_in_decays(compute_energy_j, effort.decay_j))


def marginal_gain(effort: Effort, compute_energy_j: Scalar) -> Scalar:
    """By how much the next joule of computing lowers the expected deviation, per joule; cut likewise."""
    log_deviation = effort.log_scale - energy_in_decays(compute_energy_j, effort.decay_j)
    return bounded_exp(log_deviation - finite_log(effort.decay_j))


def energy_in_decays(compute_energy_j: Scalar, decay_j: Scalar) -> Scalar:
    """Compute energy over beta2, which is the exponent of the effort model; finite whatever they are."""
    return jnp.minimum(compute_energy_j / jnp.maximum(decay_j, smallest(decay_j)), LARGEST_EXPONENT)


def finite_log(value: Scalar) -> Scalar:
    """Logarithm that is finite at 0 too."""
    positive = value >= smallest(value)
    return jnp.where(positive, jnp.log(jnp.where(positive, value, 1.0)), LOG_OF_ZERO)


def bounded_exp(log_value: Scalar) -> Scalar:
    """Exponential of a logarithm, cut so as to leave room for sums and products of a few results: e^695 in double."""
    return jnp.exp(jnp.minimum(log_value, 0.98 * float(np.log(np.finfo(log_value.dtype).max))))


def smallest(value: Scalar) -> float:
    """The least number of that precision that counts as positive: processors differ in what they make of smaller."""
    return float(np.finfo(value.dtype).tiny)


def first_guess(values: DeviceValues) -> Effort:
    """What a device believes before its first round."""
    scale = jnp.asarray(values("effort_scale"), dtype=float)
    return effort_model(scale, jnp.asarray(values("effort_decay_j"), dtype=float))
