"""The paper's scheme: devices maximise utility, the access point's noise follows contribution (Sec. III)."""

from __future__ import annotations

from fairwave.policy.access_point import fair_levels
from fairwave.policy.rules.proposed import maximise_utility as rule
from fairwave.schemes.base import Scheme

proposed = Scheme(name="proposed", plan=rule, levels=fair_levels)
