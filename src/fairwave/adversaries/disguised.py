"""A free rider that hides behind noise which fades like an update would (Fraboni, Vidal and Lorenzi 2021)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing, of_length
from fairwave.types import Params

FADING = 0.5
"""Power of the round by which the noise fades."""


def _fading(witness: Witness) -> Params:
    drawn = jax.random.normal(witness.key, witness.honest.shape, witness.honest.dtype)
    faded = (witness.number + 1.0) ** -FADING
    return of_length(drawn, witness.strength * witness.usual_length * jnp.asarray(faded))


disguised = Behaviour(
    name="disguised",
    summary="sends noise that fades over rounds, at first so many times as long as its updates; trains nothing",
    forge=_fading,
    share_of_iterations=nothing,
)
