"""Peer: CGSV (Xu et al., NeurIPS 2021): the better a device agrees, the more of the step it is given.

Devices' models drift apart: each is its last copy plus its part of the step; what it trained is not kept.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import no_levels
from fairwave.policy.rewards import (
    altruistic_shares,
    gradient_shapley_reputation,
    largest_part,
    of_length,
    trusted_step,
)
from fairwave.policy.rows import cosines
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Progress, Scheme, Terms
from fairwave.types import Key, Params, UpdatePerDevice


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    scaled = of_length(inbox.updates, terms.peers.update_length)
    step = trusted_step(scaled, memory, inbox.used)
    current = cosines(scaled, step[None, :])
    return step, gradient_shapley_reputation(memory, current, inbox.used, terms.peers.reputation_memory)


def _give(terms: Terms, inbox: Inbox, progress: Progress, memory: Memory, key: Key) -> UpdatePerDevice:
    return progress.copies + largest_part(progress.step, altruistic_shares(memory, terms.peers.altruism))


cgsv = Scheme(name="cgsv", plan=rule, levels=no_levels, combine=_combine, give=_give, start=jnp.zeros, exchanges=False)
