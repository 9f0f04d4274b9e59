"""Access-point policy: less agreement, more noise in the copy that the device receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.contribution import Score, remember, similarity
from fairwave.privacy.gaussian import Calibration, noise_multiplier
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.types import FlagPerDevice, Params, PerDevice, Scalar, UpdatePerDevice

NoiseLevels: TypeAlias = Callable[[Privacy, PerDevice], PerDevice]
"""From deviation to the noise std in each device's copy."""
Yardstick: TypeAlias = Callable[[PerDevice, FlagPerDevice], Scalar]
"""From scores, and whose count, to the score without deviation."""

SMALLEST_YARDSTICK = 1e-6
"""Best similarity below which nobody agrees with anybody, and ratios would be noise."""


class Scored(eqx.Module):
    """What the access point thinks of every participant's contribution."""

    deviation: PerDevice
    score: Score


def best_score(score: PerDevice, participating: FlagPerDevice) -> Scalar:
    """The paper's yardstick."""
    return jnp.max(jnp.where(participating, score, 0.0))


def deviation_factor(
    score: PerDevice,
    participating: FlagPerDevice,
    last_deviation: PerDevice,
    yardstick: Yardstick = best_score,
) -> PerDevice:
    """How far each device's update falls short of the best one, in [0, 1]; carried over for devices that sent none.

    Negative similarities count as none. If even the best is below `SMALLEST_YARDSTICK`, all deviate fully.

    Paper: Eq. (26).
    """
    positive = jnp.where(participating, jnp.maximum(score, 0.0), 0.0)
    best = yardstick(positive, participating)
    measurable = best > SMALLEST_YARDSTICK
    # The difference first: a compiler may divide by multiplying with a rounded reciprocal, and the best must get 0.
    current = jnp.where(measurable, (best - positive) / jnp.where(measurable, best, 1.0), 1.0)
    return jnp.where(participating, jnp.clip(current, 0.0, 1.0), last_deviation)


def fair_noise_multiplier(
    deviation: PerDevice,
    *,
    epsilon: float,
    delta: float,
    deviation_weight: float,
    calibration: Calibration = "classical",
) -> PerDevice:
    """Noise std per unit of sensitivity in each device's copy: the budget shrinks with its deviation.

    Paper: Eq. (25).
    """
    return noise_multiplier(calibration, epsilon * (1.0 - deviation_weight * deviation), delta)


def released_copy(global_params: Params, noise_std: PerDevice, standard_noise: UpdatePerDevice) -> UpdatePerDevice:
    """Each device's copy of the model: the true one plus its own noise, given as standard normal draws.

    Paper: Eq. (27).
    """
    return global_params[None, :] + noise_std[:, None] * standard_noise


def fair_levels(privacy: Privacy, deviation: PerDevice) -> PerDevice:
    """Noise std that grows with deviation."""
    return privacy.sensitivity * fair_noise_multiplier(
        deviation,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        deviation_weight=privacy.deviation_weight,
        calibration=privacy.calibration,
    )


def uniform_levels(privacy: Privacy, deviation: PerDevice) -> PerDevice:
    """The noise std of a device without deviation, for all."""
    return fair_levels(privacy, jnp.zeros_like(deviation))


def no_levels(privacy: Privacy, deviation: PerDevice) -> PerDevice:
    """No noise for anybody."""
    return jnp.zeros_like(deviation)


def score_devices(
    privacy: Privacy,
    new_global: Params,
    updates: UpdatePerDevice,
    *,
    participating: FlagPerDevice,
    last_deviation: PerDevice,
    last_score: Score,
    reported_noise_std: PerDevice | None = None,
    caught: FlagPerDevice | None = None,
    credit: PerDevice | float = 1.0,
    yardstick: Yardstick = best_score,
) -> Scored:
    """Everybody's deviation factor and running score, from what the access point received in a round.

    Whoever is caught deviates fully, and nobody is compared with it. `credit` is the share of each similarity that
    counts.
    """
    trusted = participating if caught is None else participating & ~caught
    current = credit * similarity(privacy.similarity, new_global, updates, trusted, reported_noise_std)
    score = remember(last_score, current, participating, privacy.similarity_memory)
    deviation = deviation_factor(score.similarity, trusted, last_deviation, yardstick)
    if caught is not None:
        deviation = jnp.where(participating & caught, 1.0, deviation)
    return Scored(deviation=deviation, score=score)
