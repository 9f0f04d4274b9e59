"""Min-max: as far from the mean as no honest update would give away (Shejwalkar and Houmansadr, NDSS 2021).

The farthest that the sent update is from any update of the coalition's training is the farthest that two of those are
from each other. It leaves their mean against their standard deviation, value by value.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import SHORTEST, Behaviour, CoalitionKnowledge, sent_by_all
from fairwave.types import Params, Scalar, UpdatePerDevice


def farthest_factor(rows: UpdatePerDevice, direction: Params) -> Scalar:
    """The largest factor of a direction by which the rows' mean can move, no farther from a row than two rows are.

    For every row this is a quadratic inequality in the factor, which zero solves, so that the larger root is the limit
    that the row sets, and the least of them is the limit that all set. The authors look for it by bisection.
    """
    from_mean = jnp.mean(rows, axis=0)[None, :] - rows
    squares = jnp.sum(from_mean**2, axis=1)
    widest = jnp.max(squares[:, None] + squares[None, :] - 2.0 * from_mean @ from_mean.T)
    square, product = jnp.sum(direction**2), from_mean @ direction
    room = jnp.maximum(widest - squares, 0.0)
    limits = (-product + jnp.sqrt(product**2 + square * room)) / jnp.maximum(square, SHORTEST)
    return jnp.min(limits)


def _farthest(known: CoalitionKnowledge) -> UpdatePerDevice:
    direction = -jnp.std(known.honest, axis=0)
    factor = known.strength * farthest_factor(known.honest, direction)
    return sent_by_all(jnp.mean(known.honest, axis=0) + factor * direction, known)


min_max = Behaviour(
    name="min_max",
    summary="A coalition moves its mean update by strength times the farthest that no honest update would reveal "
    "(min-max).",
    replace_together=_farthest,
)
