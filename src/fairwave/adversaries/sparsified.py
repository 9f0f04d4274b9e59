"""A device that sends only the largest values of its update."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge
from fairwave.types import Params


def _largest(known: DeviceKnowledge) -> Params:
    least = jnp.quantile(jnp.abs(known.honest), jnp.clip(1.0 - known.strength, 0.0, 1.0))
    return jnp.where(jnp.abs(known.honest) >= least, known.honest, 0.0)


sparsified = Behaviour(
    name="sparsified",
    summary="The device sends only this share (strength) of its values, the largest ones.",
    strength=0.01,
    replace_update=_largest,
)
