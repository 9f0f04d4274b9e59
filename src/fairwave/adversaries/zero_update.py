"""A free rider that sends nothing but zeros."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing
from fairwave.types import Params


def _zeros(known: DeviceKnowledge) -> Params:
    return jnp.zeros_like(known.honest)


zero_update = Behaviour(
    name="zero_update",
    summary="The device trains nothing and sends zeros.",
    replace_update=_zeros,
    share_of_iterations=nothing,
)
