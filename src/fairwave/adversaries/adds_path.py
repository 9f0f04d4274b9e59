"""A device that adds the way that its copy has come since the first round: where training goes on the whole."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    return known.honest + of_length(known.received - known.received_first, known.strength * known.usual_length)


adds_path = Behaviour(
    name="adds_path",
    summary="The device adds the change of its copy since the first round, at strength times the usual length of "
    "its updates.",
    strength=0.5,
    replace_update=_more,
)
