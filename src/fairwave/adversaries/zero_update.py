"""A free rider that sends nothing but zeros."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, Witness, nothing
from fairwave.types import Params


def _zeros(witness: Witness) -> Params:
    return jnp.zeros_like(witness.honest)


zero_update = Behaviour(
    name="zero_update", summary="sends zeros, trains nothing", forge=_zeros, share_of_iterations=nothing
)
