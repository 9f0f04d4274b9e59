"""Where every stored and exported value comes from: a privacy mode says which of these origins its proof covers."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Source(enum.Enum):
    """What a value is computed from; the text says why it is not private where no proof covers it."""

    SCENARIO = "This follows from places, channels and settings."
    MESSAGES = "This is computed from messages."
    UPDATES = "This is computed from updates without noise."
    HOLDINGS = "This shows which records a device holds, or how many."
    TRAINING_DATA = "This is computed from training data without noise."
    TIMING = "This is measured during training, without noise."


RESULTS: Mapping[str, Source] = {
    **dict.fromkeys(("cheating", "distance_m", "path_loss_db", "distance_now_m"), Source.SCENARIO),
    **dict.fromkeys(
        (
            "participating",
            "outage",
            "late",
            "late_age",
            "late_weight",
            "late_dropped",
            "delivered",
            "gradient_fault",
            "update_fault",
            "uplink_bytes",
            "planned_uplink_bytes",
            "optimal_iterations",
            "local_iterations",
            "transmit_power_w",
            "uplink_rate_bps",
            "compute_energy_j",
            "transmit_energy_j",
            "energy_j",
            "utility",
            "deviation",
            "noise_std",
            "received_accuracy",
            "test_accuracy",
            "test_rmse",
            "backdoor_success",
        ),
        Source.MESSAGES,
    ),
    **dict.fromkeys(("update_norm", "findings"), Source.UPDATES),
    "samples": Source.HOLDINGS,
    **dict.fromkeys(("loss", "received_loss", "global_loss", "membership_auc"), Source.TRAINING_DATA),
    **dict.fromkeys(("wall_time_s", "gradient_exchange_s", "update_exchange_s", "round_s"), Source.TIMING),
}
"""Every variable of a run's results and exports."""

STORED: Mapping[str, Source] = {
    "mean_loss": Source.TRAINING_DATA,
    "checkpoint": Source.TRAINING_DATA,
    "federation.jsonl": Source.TIMING,
}
"""What a run's folder holds beside its results. A simulation's checkpoint has the devices' own states in it."""
