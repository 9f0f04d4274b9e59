"""An attacker that sends the opposite of what it learned."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge
from fairwave.types import Params


def _opposite(known: DeviceKnowledge) -> Params:
    return (-known.strength * known.honest).astype(known.honest.dtype)


sign_flip = Behaviour(
    name="sign_flip", summary="The device sends minus strength times its update.", replace_update=_opposite
)
