"""Federated averaging: the benchmark's effort and no noise in the copies.

Devices train with whatever noise the scenario asks of them, so that under record-level privacy this is the baseline
without fairness noise. `no_privacy` leaves out the devices' noise as well.
"""

from __future__ import annotations

from fairwave.policy.deviation import no_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

fedavg = Scheme(
    name="fedavg",
    summary="Federated averaging uses the benchmark's effort and the scenario's noise on devices, with no noise "
    "in the copies.",
    plan=rule,
    noise_levels=no_levels,
    same_noise_for_all=True,
)
