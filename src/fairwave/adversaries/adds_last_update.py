"""A device that adds the update that it sent last to what it sends."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    return known.honest + of_length(known.sent_before, known.strength * known.usual_length)


adds_last_update = Behaviour(
    name="adds_last_update",
    summary="The device adds its last update to what it sends, at strength times the usual length of its updates.",
    strength=0.5,
    replace_update=_more,
)
