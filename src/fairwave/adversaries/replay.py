"""A free rider that sends its last update again and again."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing
from fairwave.types import Params


def _again(witness: Witness) -> Params:
    return witness.sent_before


replay = Behaviour(
    name="replay", summary="sends its last update again; trains nothing", forge=_again, share_of_iterations=nothing
)
