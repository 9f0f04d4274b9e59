"""Peer: q-FedAvg (Li et al., ICLR 2020): devices with a larger loss count for more."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import q_fair_step
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Scheme, Terms
from fairwave.types import Params


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    power, smoothness = terms.peers.q_fedavg_power, 1.0 / terms.learning_rate
    return q_fair_step(inbox.updates, inbox.told_loss, inbox.used, power, smoothness), memory


q_fedavg = Scheme(
    name="q_fedavg",
    plan=rule,
    levels=uniform_levels,
    combine=_combine,
    same_for_all=True,
    told_losses=True,
    exchanges=False,
)
