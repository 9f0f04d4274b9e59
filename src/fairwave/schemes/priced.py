"""The benchmark with a price per iteration, calibrated to the paper's mean energy cut."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.priced import priced as rule
from fairwave.schemes.scheme import Scheme

priced = Scheme(
    name="priced",
    summary="This is the benchmark with a price per iteration (calibrated, not in the paper).",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
