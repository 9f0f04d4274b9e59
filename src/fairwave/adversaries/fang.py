"""Directed deviation against the trimmed mean (Fang, Cao, Jia, Gong, USENIX Security 2020), with partial knowledge.

Of the attacks of its authors this is the one on the trimmed mean and the median: every value is drawn beyond the honest
ones, on the side against which honest devices move it. Their attack on Krum is another.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, CoalitionKnowledge
from fairwave.types import Key, Params, UpdatePerDevice

NEAREST, FARTHEST = 3.0, 4.0
"""Standard deviations from the mean between which values are drawn, as the authors have them."""


def _beyond(known: CoalitionKnowledge) -> UpdatePerDevice:
    mean, spread = jnp.mean(known.honest, axis=0), jnp.std(known.honest, axis=0)

    def one(key: Key) -> Params:
        deviations = jax.random.uniform(key, mean.shape, mean.dtype, NEAREST, FARTHEST)
        return (mean - jnp.sign(mean) * known.strength * deviations * spread).astype(known.honest.dtype)

    return jax.vmap(one)(known.keys)


fang = Behaviour(
    name="fang",
    summary="A coalition sends values on the wrong side of its mean, strength times 3 to 4 standard deviations "
    "away (Fang).",
    replace_together=_beyond,
)
