"""Gaussian mechanism: how much noise a privacy budget asks for."""

from __future__ import annotations

from typing import Literal, TypeVar

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr

from fairwave.types import PerDevice, Scalar

Budget = TypeVar("Budget", Scalar, PerDevice)
Calibration = Literal["classical", "analytic"]

LOWEST_LOG, HIGHEST_LOG = -8.0, 24.0
"""Where the logarithm of an analytic multiplier is sought: good for epsilon from 1e-9 to 1e3."""
HALVINGS = 70


def noise_multiplier(calibration: Calibration, epsilon: Budget, delta: float) -> Budget:
    """Noise std per unit of L2 sensitivity for one (epsilon, delta) release."""
    if calibration == "analytic":
        return analytic_noise_multiplier(epsilon, delta)
    return classical_noise_multiplier(epsilon, delta)


def classical_noise_multiplier(epsilon: Budget, delta: float) -> Budget:
    """Noise std per unit of L2 sensitivity for one (epsilon, delta) release.

    Proved for epsilon below 1 only, which the scenario enforces.

    Paper: Eq. (9).
    """
    return jnp.sqrt(2.0 * jnp.log(1.25 / delta)) / epsilon


def analytic_noise_multiplier(epsilon: Budget, delta: float) -> Budget:
    """The least multiplier that serves, for any epsilon (Balle and Wang 2018): where the exact delta meets the budget.

    By halving an interval of its logarithm; in doubt the larger end, which never overspends.
    """

    def halve(_: int, ends: tuple[Budget, Budget]) -> tuple[Budget, Budget]:
        low, high = ends
        middle = 0.5 * (low + high)
        too_little = leaked(jnp.exp(middle), epsilon) > delta
        return jnp.where(too_little, middle, low), jnp.where(too_little, high, middle)

    ends = jnp.full_like(epsilon, LOWEST_LOG), jnp.full_like(epsilon, HIGHEST_LOG)
    return jnp.exp(jax.lax.fori_loop(0, HALVINGS, halve, ends)[1])


def leaked(multiplier: Budget, epsilon: Budget) -> Budget:
    """Delta of one Gaussian release at that epsilon, exactly."""
    half, shift = 0.5 / multiplier, epsilon * multiplier
    return ndtr(half - shift) - jnp.exp(epsilon + log_ndtr(-half - shift))
