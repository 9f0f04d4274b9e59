"""Sybils: one attacker behind many devices, which send its update with small differences (after Fung et al. 2020).

The attacker has trained on wrong classes. Among several devices that agree it is the honest ones that look strange.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, CoalitionKnowledge, of_length
from fairwave.types import Key, Params, UpdatePerDevice


def _alike(known: CoalitionKnowledge) -> UpdatePerDevice:
    """The first device's update and, for each of the others, noise of a share of its length on it."""
    leader = known.honest[0]
    length = known.strength * jnp.sqrt(jnp.sum(leader**2))

    def one(key: Key) -> Params:
        return leader + of_length(jax.random.normal(key, leader.shape, leader.dtype), length)

    return jax.vmap(one)(known.keys).at[0].set(leader)


sybils = Behaviour(
    name="sybils",
    summary="All devices send what the first of them trains on wrong classes, with noise of strength times its length.",
    strength=0.05,
    replace_together=_alike,
    flips_labels=True,
)
