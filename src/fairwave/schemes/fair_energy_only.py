"""Ablation: the proposed effort, the same noise level for all."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.proposed import proposed as rule
from fairwave.schemes.scheme import Scheme

fair_energy_only = Scheme(
    name="fair_energy_only",
    summary="This ablation combines the proposed effort with the same noise level for all devices.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
