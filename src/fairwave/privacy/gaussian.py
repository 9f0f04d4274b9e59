"""Gaussian mechanism: how much noise a privacy budget asks for."""

from __future__ import annotations

from typing import TypeVar

import jax.numpy as jnp

from fairwave.types import PerDevice, Scalar

Budget = TypeVar("Budget", Scalar, PerDevice)


def classical_noise_multiplier(epsilon: Budget, delta: float) -> Budget:
    """Noise std per unit of L2 sensitivity for one (epsilon, delta) release.

    Proved for epsilon below 1 only, which the scenario enforces.

    Paper: Eq. (9).
    """
    return jnp.sqrt(2.0 * jnp.log(1.25 / delta)) / epsilon
