"""Peer: FedAvgM (Hsu et al., 2019): the access point's model keeps part of its momentum from round to round."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.server_optimizers import if_any_arrived, momentum_step
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    peers, mean = settings.peers, settings.aggregate(updates.rows, updates.arrived)
    moved = momentum_step(mean, memory, peers.server_momentum, peers.server_rate)
    return if_any_arrived(updates.arrived, moved, memory)


def _at_rest(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.zeros_like(model)


fedavgm = Scheme(
    name="fedavgm",
    summary="In FedAvgM (Hsu et al., 2019), the access point moves its model with momentum.",
    plan=rule,
    noise_levels=uniform_levels,
    combine=_combine,
    moves_by_aggregate=True,
    start=_at_rest,
    same_noise_for_all=True,
    exchanges_gradients=False,
)
