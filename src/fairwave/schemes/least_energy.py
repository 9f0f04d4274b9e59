"""Peer: a required number of iterations for the least energy; the same noise level for all."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.least_energy import least_energy as rule
from fairwave.schemes.scheme import Scheme

least_energy = Scheme(
    name="least_energy",
    summary="Devices do the required iterations with the least energy.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
