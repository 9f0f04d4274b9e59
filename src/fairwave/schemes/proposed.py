"""The paper's scheme: devices maximise utility, the access point's noise follows contribution (Sec. III)."""

from __future__ import annotations

from fairwave.policy.deviation import fair_levels
from fairwave.policy.rules.proposed import proposed as rule
from fairwave.schemes.scheme import Scheme

proposed = Scheme(
    name="proposed",
    summary="This is the paper's scheme: devices maximise their utility, and noise follows contribution.",
    plan=rule,
    noise_levels=fair_levels,
)
