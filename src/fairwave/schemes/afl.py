"""Peer: agnostic federated learning (Mohri et al., ICML 2019): the worst mixture of devices counts."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import agnostic_weights, shares
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Scheme, Terms
from fairwave.types import Params


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    """Last round's weights move the model, this round's losses move the weights; local training stands for a step."""
    step = shares(jnp.where(inbox.used, memory, 0.0)) @ inbox.updates
    return step, agnostic_weights(memory, inbox.told_loss, inbox.used, terms.peers.afl_rate)


def _evenly(num_devices: int) -> Memory:
    return jnp.full(num_devices, 1.0 / num_devices)


afl = Scheme(
    name="afl",
    plan=rule,
    levels=uniform_levels,
    combine=_combine,
    start=_evenly,
    same_for_all=True,
    told_losses=True,
    exchanges=False,
)
