"""Peer: IAFL (Wu et al., ICLR 2024): devices that bring more data are given the updates of more others."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.policy.deviation import no_levels
from fairwave.policy.performance_fairness import shares
from fairwave.policy.rewards import others_drawn, reward_rates
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings, ServerStep
from fairwave.types import Key, Params, PerDevice, UpdatePerDevice


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    return shares(updates.arrived * 1.0) @ updates.rows, memory


def _scores(settings: SchemeSettings, updates: Updates, memory: Memory) -> PerDevice:
    return reward_rates(updates.num_samples, settings.peers.iafl_equality)


def _reward(settings: SchemeSettings, updates: Updates, moved: ServerStep, memory: Memory, key: Key) -> UpdatePerDevice:
    drawing, luck = jax.random.split(key)
    rates = _scores(settings, updates, memory)
    given = moved.copies + others_drawn(drawing, updates.arrived, rates) @ updates.rows
    recovers = jax.random.uniform(luck, updates.arrived.shape) < settings.peers.iafl_recovery
    return jnp.where(recovers[:, None], moved.model[None, :], given)


iafl = Scheme(
    name="iafl",
    summary="IAFL (Wu et al., ICLR 2024) gives devices that bring more data the updates of more other devices.",
    plan=rule,
    noise_levels=no_levels,
    combine=_combine,
    reward=_reward,
    scores=_scores,
    exchanges_gradients=False,
)
