"""Peer: FEDL (Tran et al., INFOCOM 2019): least energy plus priced delay."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.energy_and_delay import energy_and_delay as rule
from fairwave.schemes.scheme import Scheme

fedl = Scheme(name="fedl", plan=rule, levels=uniform_levels, same_for_all=True)
