"""Ablation: the benchmark's effort, the proposed noise."""

from __future__ import annotations

from fairwave.policy.deviation import fair_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

fair_noise_only = Scheme(
    name="fair_noise_only",
    summary="This ablation combines the benchmark's effort with the proposed noise.",
    plan=rule,
    noise_levels=fair_levels,
)
