"""A round's record as named arrays: what is stored, and what results are made of."""

from __future__ import annotations

import numpy as np

from fairwave.engine.state import RoundRecord
from fairwave.policy.plan import Case

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
    "loss", "received_loss", "update_norm", "deviation", "noise_std", "participating", "late", "delivered", "cheating",
    "findings",
)  # fmt: skip
PER_ROUND = ("global_loss", "test_accuracy", "membership_auc")

Arrays = dict[str, np.ndarray]


def as_arrays(record: RoundRecord) -> Arrays:
    """Every value of the record under the name it has in results."""
    arrays = {name: np.asarray(getattr(record.plan, name)) for name in FROM_PLAN}
    arrays |= {name: np.asarray(getattr(record, name)) for name in (*PER_DEVICE, *PER_ROUND)}
    arrays["outage"] = arrays["participating"] & (np.asarray(record.plan.case) == int(Case.OUTAGE))
    return arrays
