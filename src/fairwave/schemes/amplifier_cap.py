"""The benchmark with the power bound read as the amplifier's input."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.amplifier_cap import amplifier_cap as rule
from fairwave.schemes.scheme import Scheme

amplifier_cap = Scheme(
    name="amplifier_cap",
    summary="This is the benchmark with the power bound read as the amplifier's input.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
