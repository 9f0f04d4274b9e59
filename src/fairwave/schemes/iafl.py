"""Peer: IAFL (Wu et al., ICLR 2024): devices that bring more data are given the updates of more others."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.policy.deviation import no_levels
from fairwave.policy.performance_fairness import shares
from fairwave.policy.rewards import others_drawn, reward_rates
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Progress, Scheme, Terms
from fairwave.types import Key, Params, UpdatePerDevice


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    return shares(inbox.used * 1.0) @ inbox.updates, memory


def _give(terms: Terms, inbox: Inbox, progress: Progress, memory: Memory, key: Key) -> UpdatePerDevice:
    drawing, luck = jax.random.split(key)
    rates = reward_rates(inbox.held, terms.peers.iafl_equality)
    moved = progress.copies + others_drawn(drawing, inbox.used, rates) @ inbox.updates
    recovers = jax.random.uniform(luck, inbox.used.shape) < terms.peers.iafl_recovery
    return jnp.where(recovers[:, None], progress.model[None, :], moved)


iafl = Scheme(name="iafl", plan=rule, levels=no_levels, combine=_combine, give=_give, exchanges=False)
