"""Peer: SCAFFOLD (Karimireddy et al., ICML 2020): control variates take out of training what is a device's own.

Option II: a device's control variate follows from its update. Updates are scaled to `peers.effective_steps`, as those
of `fednova` are, so that the access point can work out from an update how the control variate has changed: nothing is
sent beside it, and an upload is as long as in other schemes. What is new on the way down, the mean control variate,
follows from the models of all rounds, since copies have no noise here.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.learning.optimizer import rate_in
from fairwave.policy.deviation import no_levels
from fairwave.policy.drift import control_term, next_control, next_mean_control
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.server_optimizers import if_any_arrived
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Drift, Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    control, rounds = memory
    mean = settings.aggregate(updates.rows, updates.arrived)
    reach = settings.update_weight * rate_in(settings.learning_rate, settings.rate_decay, rounds)
    after = next_mean_control(control, mean, jnp.mean(updates.arrived), reach)
    step, control = if_any_arrived(updates.arrived, (mean, after.astype(control.dtype)), control)
    return step, (control, rounds + 1)


def _no_control(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
    return jnp.zeros_like(model), jnp.zeros((), int)


scaffold = Scheme(
    name="scaffold",
    summary="In SCAFFOLD (Karimireddy et al., ICML 2020), control variates remove from training what is specific "
    "to one device.",
    plan=rule,
    noise_levels=no_levels,
    combine=_combine,
    moves_by_aggregate=True,
    start=_no_control,
    same_noise_for_all=True,
    scales_to_steps=True,
    drift=Drift(
        term=control_term,
        after=lambda peers, own, told, sent, reach: next_control(own, told, sent, reach),
        told=lambda memory: memory[0],
    ),
    exchanges_gradients=False,
)
