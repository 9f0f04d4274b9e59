"""Peer: CFFL (Lyu et al., FL-IJCAI 2020): credits by accuracy on the access point's samples set rewards.

Whole updates are uploaded and averaged. A device keeps what it trained, gets its part of the step, and its own share of
the step is taken off everywhere, as in the authors' code, even where its part has nothing.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import no_levels
from fairwave.policy.performance_fairness import shares
from fairwave.policy.rewards import earned_credits, largest_part, of_the_best, still_members
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Progress, Scheme, Terms
from fairwave.types import Key, Params, UpdatePerDevice


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    credit, member = memory
    peers, used = terms.peers, inbox.used & member
    earned = earned_credits(credit, inbox.accuracy, used, member, peers.cffl_punishment)
    stays = still_members(earned, member, used, peers.removal_share)
    return shares((used & stays) * 1.0) @ inbox.updates, (shares(jnp.where(stays, earned, 0.0)), stays)


def _give(terms: Terms, inbox: Inbox, progress: Progress, memory: Memory, key: Key) -> UpdatePerDevice:
    credit, member = memory
    part = largest_part(progress.step, of_the_best(credit))
    own_share = shares((inbox.used & member) * 1.0)[:, None] * inbox.updates
    return progress.copies + inbox.updates + jnp.where(member[:, None], part - own_share, 0.0)


def _strangers(num_devices: int) -> Memory:
    return jnp.full(num_devices, 1.0 / num_devices), jnp.ones(num_devices, bool)


cffl = Scheme(
    name="cffl",
    plan=rule,
    levels=no_levels,
    combine=_combine,
    give=_give,
    start=_strangers,
    needs_samples=True,
    exchanges=False,
    needs_all=True,
)
