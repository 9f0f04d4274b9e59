"""A free rider that hides behind noise which fades like an update would (Fraboni, Vidal and Lorenzi 2021)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, nothing, of_length
from fairwave.types import Params

FADING = 0.5
"""Power of the round by which the noise fades."""


def _fading(known: DeviceKnowledge) -> Params:
    drawn = jax.random.normal(known.key, known.honest.shape, known.honest.dtype)
    faded = (known.round_index + 1.0) ** -FADING
    return of_length(drawn, known.strength * known.usual_length * jnp.asarray(faded))


disguised = Behaviour(
    name="disguised",
    summary="The device trains nothing and sends noise that fades over rounds, at first with strength times the "
    "usual length.",
    replace_update=_fading,
    share_of_iterations=nothing,
)
