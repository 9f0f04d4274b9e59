"""Peer: q-FedAvg (Li et al., ICLR 2020): devices with a larger loss count for more."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import q_fair_step
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    power, smoothness = settings.peers.q_fedavg_power, 1.0 / settings.learning_rate
    return q_fair_step(updates.rows, updates.reported_loss, updates.arrived, power, smoothness), memory


q_fedavg = Scheme(
    name="q_fedavg",
    summary="In q-FedAvg (Li et al., ICLR 2020), devices with a larger loss have more weight.",
    plan=rule,
    noise_levels=uniform_levels,
    combine=_combine,
    same_noise_for_all=True,
    reports_losses=True,
    exchanges_gradients=False,
)
