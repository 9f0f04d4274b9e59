"""Ablation: every device spends the same energy budget; the same noise level for all."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.equal_energy import equal_energy as rule
from fairwave.schemes.scheme import Scheme

equal_energy = Scheme(
    name="equal_energy",
    summary="This ablation does as many iterations as an energy budget allows.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
