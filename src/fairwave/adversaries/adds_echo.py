"""A device that adds the last change of its copy to what it sends: the last global update, noise included."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    return known.honest + of_length(known.received - known.received_before, known.strength * known.usual_length)


adds_echo = Behaviour(
    name="adds_echo",
    summary="The device adds the last change of its copy to its update, at strength times the usual length of its "
    "updates.",
    strength=0.5,
    replace_update=_more,
)
