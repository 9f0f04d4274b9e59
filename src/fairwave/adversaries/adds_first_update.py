"""A device that adds the first update that it ever sent: no other has so much learning in it for its noise."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    return known.honest + of_length(known.sent_first, known.strength * known.usual_length)


adds_first_update = Behaviour(
    name="adds_first_update",
    summary="The device adds its first update to what it sends, at strength times the usual length of its updates.",
    strength=0.2,
    replace_update=_more,
)
