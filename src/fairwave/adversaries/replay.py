"""A free rider that sends its last update again and again."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing
from fairwave.types import Params


def _again(known: DeviceKnowledge) -> Params:
    return known.sent_before


replay = Behaviour(
    name="replay",
    summary="The device trains nothing and sends its last update again.",
    replace_update=_again,
    share_of_iterations=nothing,
)
