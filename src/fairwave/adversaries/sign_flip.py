"""An attacker that sends the opposite of what it learned."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, Witness
from fairwave.types import Params


def _opposite(witness: Witness) -> Params:
    return (-witness.strength * witness.honest).astype(witness.honest.dtype)


sign_flip = Behaviour(name="sign_flip", summary="sends minus so many times its update", forge=_opposite)
