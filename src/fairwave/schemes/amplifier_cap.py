"""The benchmark with the power bound read as the amplifier's input."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.amplifier_cap import amplifier_cap as rule
from fairwave.schemes.scheme import Scheme

amplifier_cap = Scheme(name="amplifier_cap", plan=rule, levels=uniform_levels, same_for_all=True)
