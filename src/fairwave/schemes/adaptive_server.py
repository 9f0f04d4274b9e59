"""What the schemes of Reddi et al. (ICLR 2021) share: they differ in how the second moment is tracked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.policy.server_optimizers import adaptive_step, first_moments, if_any_arrived
from fairwave.policy.updates import Updates
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params

SecondMomentOf: TypeAlias = Callable[[Peers, Params, Params], Params]
"""From the peers' parameters, the second moment and the mean update to the next second moment."""


def adaptive_server(
    name: str, summary: str, second_moment: SecondMomentOf, momentum: Callable[[Peers], float]
) -> Scheme:
    """A scheme whose access point moves its model with an adaptive optimiser, fed with the mean update."""

    def combine(settings: SchemeSettings, updates: Updates, memory: Memory) -> tuple[Params, Memory]:
        peers = settings.peers
        moved = adaptive_step(
            settings.aggregate(updates.rows, updates.arrived),
            memory,
            lambda second, mean: second_moment(peers, second, mean),
            momentum=momentum(peers),
            rate=peers.adaptive_rate,
            tau=peers.adaptive_tau,
        )
        return if_any_arrived(updates.arrived, moved, memory)

    def start(settings: SchemeSettings, num_devices: int, model: Params) -> Memory:
        return first_moments(model, settings.peers.adaptive_tau)

    return Scheme(
        name=name,
        summary=summary,
        plan=rule,
        noise_levels=uniform_levels,
        combine=combine,
        moves_by_aggregate=True,
        start=start,
        same_noise_for_all=True,
        exchanges_gradients=False,
    )
