"""The paper's benchmark as worded: full power, all iterations that fit, the same noise level for all."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

max_power = Scheme(
    name="max_power",
    summary="This is the paper's benchmark as worded: devices use full power and do all iterations that fit, and "
    "all get the same noise level.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
)
