"""A device that sends only the largest values of its update."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, Witness
from fairwave.types import Params


def _largest(witness: Witness) -> Params:
    least = jnp.quantile(jnp.abs(witness.honest), jnp.clip(1.0 - witness.strength, 0.0, 1.0))
    return jnp.where(jnp.abs(witness.honest) >= least, witness.honest, 0.0)


sparsified = Behaviour(
    name="sparsified", summary="sends this share of its values, the largest", strength=0.01, forge=_largest
)
