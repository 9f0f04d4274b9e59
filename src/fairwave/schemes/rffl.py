"""Peer: RFFL (Xu and Lyu, FL-ICML 2021): reputations set rewards, and the least reputed are removed.

A device keeps what it trained and adds its part of the step.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import no_levels
from fairwave.policy.rewards import (
    at_most_of_length,
    largest_part,
    of_the_best,
    robust_reputation,
    still_members,
    trusted_step,
)
from fairwave.policy.rows import cosines
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings, ServerStep
from fairwave.types import Key, Params, PerDevice, UpdatePerDevice


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    reputation, member, rounds = memory
    peers, used = settings.peers, updates.arrived & member
    clipped = at_most_of_length(updates.rows, peers.update_length)
    step = trusted_step(clipped, reputation, used)
    moved = robust_reputation(reputation, cosines(clipped, step[None, :]), used, member, peers.reputation_memory)
    judged = used & (rounds >= peers.rffl_patience)
    stays = still_members(moved, member, judged, peers.removal_share)
    return step, (robust_reputation(moved, moved, used, stays, 1.0), stays, rounds + 1)


def _reward(settings: SchemeSettings, updates: Updates, moved: ServerStep, memory: Memory, key: Key) -> UpdatePerDevice:
    reputation, _, _ = memory
    own = at_most_of_length(updates.rows, settings.peers.update_length)
    return moved.copies + own + largest_part(moved.step, of_the_best(reputation))


def _scores(settings: SchemeSettings, updates: Updates, memory: Memory) -> PerDevice:
    reputation: PerDevice = memory[0]
    return reputation


def _strangers(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.zeros(num_devices), jnp.ones(num_devices, bool), jnp.zeros((), int)


rffl = Scheme(
    name="rffl",
    summary="RFFL (Xu and Lyu, FL-ICML 2021) sets rewards by reputation and removes the devices with the lowest one.",
    plan=rule,
    noise_levels=no_levels,
    combine=_combine,
    reward=_reward,
    scores=_scores,
    start=_strangers,
    exchanges_gradients=False,
    needs_every_device=True,
)
