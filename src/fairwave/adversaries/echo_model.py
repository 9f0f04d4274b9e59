"""A free rider that sends back the model it received: the break of the literal similarity."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing, of_length
from fairwave.types import Params


def _echo(witness: Witness) -> Params:
    return of_length(witness.received, witness.strength * witness.usual_length)


echo_model = Behaviour(
    name="echo_model",
    summary="sends the model it received, so many times as long as its updates were; trains nothing",
    forge=_echo,
    share_of_iterations=nothing,
)
