"""Server optimisers: the mean update of a round is taken for a gradient, and an optimiser makes the step of it.

Updates point downhill, so that the mean update is the negative of the gradient and steps are added to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from fairwave.types import FlagPerDevice, Params

Carried = TypeVar("Carried")
"""What an optimiser carries from round to round."""
SecondMoment: TypeAlias = Callable[[Params, Params], Params]
"""From the second moment and the mean update to the next second moment."""


class Moments(eqx.Module):
    """What an adaptive server optimiser carries from round to round, for every value of the model."""

    first: Params
    """The moving average of the mean updates."""
    second: Params
    """The scale of their squares, as the optimiser tracks it."""


def first_moments(model: Params, tau: float) -> Moments:
    """Moments before the first round: no direction, and the least second moment that the paper allows."""
    return Moments(jnp.zeros_like(model), jnp.full_like(model, tau**2))


def momentum_step(mean: Params, momentum: Params, decay: float, rate: float) -> tuple[Params, Params]:
    """Step of FedAvgM and the next momentum, which sums up the mean updates.

    Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
    2019.
    """
    grown = decay * momentum + mean
    return rate * grown, grown


def adaptive_step(
    mean: Params, moments: Moments, second_moment: SecondMoment, *, momentum: float, rate: float, tau: float
) -> tuple[Params, Moments]:
    """Step of FedAdagrad, FedAdam or FedYogi, whichever the second moment is of, and the next moments.

    Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021,
    Algorithm 2: moments are not corrected for their start, and tau is added to the root. A value of the mean that is
    too large to be squared counts as zero: its second moment would be infinite, and it would never move again.
    """
    mean = jnp.where(jnp.isfinite(mean**2), mean, 0.0)
    first = momentum * moments.first + (1.0 - momentum) * mean
    second = second_moment(moments.second, mean)
    return rate * first / (jnp.sqrt(second) + tau), Moments(first, second)


def adagrad_second_moment(second: Params, mean: Params) -> Params:
    """Next second moment of FedAdagrad: the sum of all squares."""
    return second + mean**2


def adam_second_moment(second: Params, mean: Params, decay: float) -> Params:
    """Next second moment of FedAdam: a moving average of the squares."""
    return decay * second + (1.0 - decay) * mean**2


def yogi_second_moment(second: Params, mean: Params, decay: float) -> Params:
    """Next second moment of FedYogi: it moves towards the square by a part of the square, whichever is larger."""
    return second - (1.0 - decay) * mean**2 * jnp.sign(second - mean**2)


def if_any_arrived(used: FlagPerDevice, moved: tuple[Params, Carried], memory: Carried) -> tuple[Params, Carried]:
    """The step and the next memory of a round; no step, and the memory as it was, if no update was used."""
    step, after = moved
    there = jnp.any(used)
    kept: Carried = jax.tree.map(lambda new, old: jnp.where(there, new, old), after, memory)
    return jnp.where(there, step, 0.0), kept
