"""Peer: agnostic federated learning (Mohri et al., ICML 2019): the worst mixture of devices counts."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import agnostic_weights, shares
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    """Last round's weights move the model, this round's losses move the weights; local training stands for a step."""
    step = shares(jnp.where(updates.arrived, memory, 0.0)) @ updates.rows
    return step, agnostic_weights(memory, updates.reported_loss, updates.arrived, settings.peers.afl_rate)


def _evenly(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.full(num_devices, 1.0 / num_devices)


afl = Scheme(
    name="afl",
    summary="Agnostic federated learning (Mohri et al., ICML 2019) trains for the worst mixture of devices.",
    plan=rule,
    noise_levels=uniform_levels,
    combine=_combine,
    start=_evenly,
    same_noise_for_all=True,
    reports_losses=True,
    exchanges_gradients=False,
)
