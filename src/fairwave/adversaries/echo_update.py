"""A free rider that sends how its copy has changed: the last global update, noise included (Zhu et al. 2021)."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing, of_length
from fairwave.types import Params


def _echo(witness: Witness) -> Params:
    return of_length(witness.received - witness.received_before, witness.strength * witness.usual_length)


echo_update = Behaviour(
    name="echo_update",
    summary="sends the change of its copy, so many times as long as its updates were; trains nothing",
    forge=_echo,
    share_of_iterations=nothing,
)
