"""A free rider that sends back the model it received: the break of the literal similarity."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing, of_length
from fairwave.types import Params


def _echo(known: DeviceKnowledge) -> Params:
    return of_length(known.received, known.strength * known.usual_length)


echo_model = Behaviour(
    name="echo_model",
    summary="sends the model it received, so many times as long as its updates were; trains nothing",
    replace_update=_echo,
    share_of_iterations=nothing,
)
