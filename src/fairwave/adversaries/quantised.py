"""A device that saves effort by sending few levels per value."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge
from fairwave.types import Params


def _coarse(known: DeviceKnowledge) -> Params:
    largest = jnp.max(jnp.abs(known.honest))
    step = 2.0 * largest / jnp.maximum(known.strength - 1.0, 1.0)
    safe = jnp.where(step > 0.0, step, 1.0)
    return (jnp.round(known.honest / safe) * safe).astype(known.honest.dtype)


quantised = Behaviour(
    name="quantised",
    summary="The device sends each value with only strength different levels.",
    strength=3.0,
    replace_update=_coarse,
)
