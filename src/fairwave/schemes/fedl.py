"""Peer: FEDL (Tran et al., INFOCOM 2019): least energy plus priced delay."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.fedl import fedl as rule
from fairwave.schemes.scheme import Scheme

fedl = Scheme(
    name="fedl",
    summary="In FEDL (Tran et al., INFOCOM 2019), devices do the required iterations with the least energy and a "
    "price on delay.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
