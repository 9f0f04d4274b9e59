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
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings, ServerStep
from fairwave.types import Key, Params, PerDevice, UpdatePerDevice


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    credit, member = memory
    peers, used = settings.peers, updates.arrived & member
    earned = earned_credits(credit, updates.accuracy, used, member, peers.cffl_punishment)
    stays = still_members(earned, member, used, peers.removal_share)
    return shares((used & stays) * 1.0) @ updates.rows, (shares(jnp.where(stays, earned, 0.0)), stays)


def _reward(settings: SchemeSettings, updates: Updates, moved: ServerStep, memory: Memory, key: Key) -> UpdatePerDevice:
    credit, member = memory
    part = largest_part(moved.step, of_the_best(credit))
    own_share = shares((updates.arrived & member) * 1.0)[:, None] * updates.rows
    return moved.copies + updates.rows + jnp.where(member[:, None], part - own_share, 0.0)


def _scores(settings: SchemeSettings, updates: Updates, memory: Memory) -> PerDevice:
    credit: PerDevice = memory[0]
    return credit


def _strangers(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.full(num_devices, 1.0 / num_devices), jnp.ones(num_devices, bool)


cffl = Scheme(
    name="cffl",
    summary="CFFL (Lyu et al., FL-IJCAI 2020) sets rewards by credits, which follow from accuracy on the access "
    "point's samples.",
    plan=rule,
    noise_levels=no_levels,
    combine=_combine,
    reward=_reward,
    scores=_scores,
    start=_strangers,
    needs_server_data=True,
    needs_classes=True,
    exchanges_gradients=False,
    needs_every_device=True,
)
