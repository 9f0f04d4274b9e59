"""Peer: FedDyn (Acar et al., ICLR 2021): a linear term on every device moves its optimum to that of all devices.

A device trains from its copy with a pull back towards it, less a linear term that has added up the changes it has sent.
The access point's model goes beyond the mean of the devices' models by what all of their changes have added up to.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.drift import dynamic_step, next_dynamic_term
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.server_optimizers import if_any_arrived
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Drift, Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    mean, share = settings.aggregate(updates.rows, updates.arrived), jnp.mean(updates.arrived)
    step, after = dynamic_step(mean, memory, share, settings.peers.feddyn_weight)
    return if_any_arrived(updates.arrived, (step, after.astype(memory.dtype)), memory)


def _at_rest(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.zeros_like(model)


feddyn = Scheme(
    name="feddyn",
    summary="In FedDyn (Acar et al., ICLR 2021), a linear term on every device moves its optimum to that of all "
    "devices.",
    plan=rule,
    noise_levels=uniform_levels,
    combine=_combine,
    moves_by_aggregate=True,
    start=_at_rest,
    same_noise_for_all=True,
    copy_pull=lambda peers: peers.feddyn_weight,
    drift=Drift(
        term=lambda own, told: own,
        after=lambda peers, own, told, sent, reach: next_dynamic_term(own, sent, peers.feddyn_weight),
    ),
    exchanges_gradients=False,
)
