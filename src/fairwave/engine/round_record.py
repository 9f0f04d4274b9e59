"""A round's record as named arrays: what is stored, and what results are made of."""

from __future__ import annotations

import numpy as np

from fairwave.engine.state import RoundRecord
from fairwave.policy.device_plan import Case
from fairwave.types import PerDevice

FROM_PLAN = (
    "optimal_iterations",
    "local_iterations",
    "transmit_power_w",
    "uplink_rate_bps",
    "compute_energy_j",
    "transmit_energy_j",
    "energy_j",
    "utility",
)
PER_DEVICE = (
    "loss", "received_loss", "received_accuracy", "update_norm", "deviation", "noise_std", "participating", "late",
    "delivered", "cheating", "findings",
)  # fmt: skip
OF_THE_MOVING = ("distance_now_m",)
"""Per device, where devices move."""
FAULTS = ("gradient_fault", "update_fault")
OF_FEDERATED_DEVICES = (*FAULTS, "wall_time_s")
"""Per device, in federations: why an exchange went without it, and how long it trained."""
OF_FEDERATED_ROUNDS = ("gradient_exchange_s", "update_exchange_s", "round_s")
"""Per round, in federations: wall time."""
PER_ROUND = ("global_loss", "test_accuracy", "membership_auc")

Arrays = dict[str, np.ndarray]


def mean_of_participants(values: PerDevice | np.ndarray) -> float:
    """Mean over the devices that took part, whose values alone are numbers; NaN where nobody did."""
    told = np.asarray(values)
    return float("nan") if np.isnan(told).all() else float(np.nanmean(told))


def as_arrays(record: RoundRecord) -> Arrays:
    """Every value of the record under the name it has in results."""
    arrays = {name: np.asarray(getattr(record.plan, name)) for name in FROM_PLAN}
    arrays |= {name: np.asarray(getattr(record, name)) for name in (*PER_DEVICE, *PER_ROUND)}
    if record.distance_now_m is not None:
        arrays |= {name: np.asarray(getattr(record, name)) for name in OF_THE_MOVING}
    arrays["outage"] = arrays["participating"] & (np.asarray(record.plan.case) == int(Case.OUTAGE))
    return arrays
