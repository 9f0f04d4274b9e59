"""A device that adds the last change of its copy to what it sends: the last global update, noise included."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    return known.honest + of_length(known.received - known.received_before, known.strength * known.usual_length)


adds_echo = Behaviour(
    name="adds_echo",
    summary="adds the change of its copy, so many times as long as its updates were, to what it sends",
    strength=0.5,
    replace_update=_more,
)
