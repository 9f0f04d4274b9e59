"""Ablation: the proposed effort, one noisy model for all."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.proposed import maximise_utility as rule
from fairwave.schemes.scheme import Scheme

fair_energy_only = Scheme(name="fair_energy_only", plan=rule, levels=uniform_levels, same_for_all=True)
