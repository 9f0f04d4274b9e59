"""An attacker that makes itself heard by sending a longer update (boosting)."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, Witness
from fairwave.types import Params


def _longer(witness: Witness) -> Params:
    return (witness.strength * witness.honest).astype(witness.honest.dtype)


scaled = Behaviour(name="scaled", summary="sends so many times its update", strength=10.0, forge=_longer)
