"""Plain federated averaging: the benchmark's effort, no noise anywhere."""

from __future__ import annotations

from fairwave.policy.deviation import no_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

no_privacy = Scheme(
    name="no_privacy",
    summary="Plain federated averaging uses the benchmark's effort and adds no noise anywhere.",
    plan=rule,
    noise_levels=no_levels,
    same_noise_for_all=True,
    noisy_updates=False,
)
