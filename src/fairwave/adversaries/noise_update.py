"""A free rider that sends noise as long as its updates used to be."""

from __future__ import annotations

import jax

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing, of_length
from fairwave.types import Params


def _noise(witness: Witness) -> Params:
    drawn = jax.random.normal(witness.key, witness.honest.shape, witness.honest.dtype)
    return of_length(drawn, witness.strength * witness.usual_length)


noise_update = Behaviour(
    name="noise_update",
    summary="sends noise, so many times as long as its updates were; trains nothing",
    forge=_noise,
    share_of_iterations=nothing,
)
