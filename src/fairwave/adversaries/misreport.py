"""A device that fools its own planning: it pretends that work changes nothing."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour
from fairwave.policy.effort import Effort
from fairwave.types import Scalar


def _work_is_useless(effort: Effort, strength: Scalar) -> Effort:
    return Effort(scale=effort.scale * jnp.clip(1.0 - strength, 0.0, 1.0), decay_j=effort.decay_j)


misreport = Behaviour(
    name="misreport",
    summary="plans as if its deviation followed its work by this share less than it does",
    planning_belief=_work_is_useless,
)
