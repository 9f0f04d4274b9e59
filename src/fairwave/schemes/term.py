"""Peer: tilted empirical risk (Li et al., ICLR 2021): weights exponential in the loss."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import tilted_weights
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params


def _combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
    return tilted_weights(updates.reported_loss, updates.arrived, settings.peers.term_tilt) @ updates.rows, memory


term = Scheme(
    name="term",
    summary="Tilted empirical risk (Li et al., ICLR 2021) gives devices weights that are exponential in their loss.",
    plan=rule,
    noise_levels=uniform_levels,
    combine=_combine,
    same_noise_for_all=True,
    reports_losses=True,
    exchanges_gradients=False,
)
