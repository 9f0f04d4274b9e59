"""An attacker that makes itself heard by sending a longer update (boosting)."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge
from fairwave.types import Params


def _longer(known: DeviceKnowledge) -> Params:
    return (known.strength * known.honest).astype(known.honest.dtype)


scaled = Behaviour(
    name="scaled", summary="The device sends strength times its update.", strength=10.0, replace_update=_longer
)
