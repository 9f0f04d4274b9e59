"""A free rider that sends how its copy has changed: the last global update, noise included (Zhu et al. 2021)."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing, of_length
from fairwave.types import Params


def _echo(known: DeviceKnowledge) -> Params:
    return of_length(known.received - known.received_before, known.strength * known.usual_length)


echo_update = Behaviour(
    name="echo_update",
    summary="The device trains nothing and sends the last change of its copy, at strength times the usual length "
    "of its updates.",
    replace_update=_echo,
    share_of_iterations=nothing,
)
