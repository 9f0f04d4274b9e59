"""A strategic device that learns how little it can get away with."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, Habit
from fairwave.types import Scalar

CHANGE, LEAST = 0.8, 0.01
"""Factor by which it does less after a round that went well, and the least share it tries."""


def _push_its_luck(habit: Habit, deviation: Scalar, tolerance: Scalar) -> Habit:
    changed = jnp.where(deviation <= tolerance, habit.share * CHANGE, habit.share / CHANGE**2)
    return Habit(share=jnp.clip(changed, LEAST, 1.0))


lazy = Behaviour(
    name="lazy",
    summary="The device does less and less while its deviation stays at or below strength, and more when it does not.",
    strength=0.2,
    adapts=_push_its_luck,
)
