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
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings, ServerStep
from fairwave.types import Key, Params, PerDevice, UpdatePerDevice


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    scaled = of_length(updates.rows, settings.peers.update_length)
    step = trusted_step(scaled, memory, updates.arrived)
    current = cosines(scaled, step[None, :])
    return step, gradient_shapley_reputation(memory, current, updates.arrived, settings.peers.reputation_memory)


def _reward(settings: SchemeSettings, updates: Updates, moved: ServerStep, memory: Memory, key: Key) -> UpdatePerDevice:
    return moved.copies + largest_part(moved.step, altruistic_shares(memory, settings.peers.altruism))


def _scores(settings: SchemeSettings, updates: Updates, memory: Memory) -> PerDevice:
    reputation: PerDevice = memory
    return reputation


def _unknown(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.zeros(num_devices)


cgsv = Scheme(
    name="cgsv",
    summary="CGSV (Xu et al., NeurIPS 2021) gives a device more of the step if its updates agree better with the "
    "others.",
    plan=rule,
    noise_levels=no_levels,
    combine=_combine,
    reward=_reward,
    scores=_scores,
    start=_unknown,
    exchanges_gradients=False,
)
