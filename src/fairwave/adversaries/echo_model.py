"""A free rider that sends back the model it received: the break of the literal similarity."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing, of_length
from fairwave.types import Params


def _echo(known: DeviceKnowledge) -> Params:
    return of_length(known.received, known.strength * known.usual_length)


echo_model = Behaviour(
    name="echo_model",
    summary="The device trains nothing and sends the model that it received, at strength times the usual length "
    "of its updates.",
    replace_update=_echo,
    share_of_iterations=nothing,
)
