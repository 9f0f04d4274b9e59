"""A free rider that sends noise as long as its updates used to be."""

from __future__ import annotations

import jax

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing, of_length
from fairwave.types import Params


def _noise(known: DeviceKnowledge) -> Params:
    drawn = jax.random.normal(known.key, known.honest.shape, known.honest.dtype)
    return of_length(drawn, known.strength * known.usual_length)


noise_update = Behaviour(
    name="noise_update",
    summary="The device trains nothing and sends noise, at strength times the usual length of its updates.",
    replace_update=_noise,
    share_of_iterations=nothing,
)
