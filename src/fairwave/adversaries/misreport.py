"""A device that fools its own planning: it pretends that work changes nothing."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour
from fairwave.policy.effort import Effort, finite_log
from fairwave.types import Scalar


def _work_is_useless(effort: Effort, strength: Scalar) -> Effort:
    believed = finite_log(jnp.clip(1.0 - strength, 0.0, 1.0))
    return Effort(log_scale=effort.log_scale + believed, decay_j=effort.decay_j)


misreport = Behaviour(
    name="misreport",
    summary="The device plans as if its deviation depended on its work by this share (strength) less than it does.",
    planning_belief=_work_is_useless,
)
