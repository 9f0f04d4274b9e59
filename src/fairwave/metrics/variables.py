"""What the variables of results and plans are: units and long names, which xarray's plots and NetCDF's readers show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

JOULES, SECONDS, METRES, WATTS, BYTES, DECIBELS, NUMBER = "J", "s", "m", "W", "byte", "dB", "1"
"""Units; 1 is that of pure numbers, as NetCDF's conventions have it."""

AXES: Mapping[str, tuple[str, str]] = {
    "scheme": (NUMBER, "scheme"),
    "policy": (NUMBER, "policy"),
    "seed": (NUMBER, "seed"),
    "round": (NUMBER, "communication round"),
    "device": (NUMBER, "device"),
    "case_name": (NUMBER, "case of the optimum"),
    "distance_m": (METRES, "distance from the access point"),
    "path_loss_db": (DECIBELS, "path loss"),
    "preparation_energy_j": (JOULES, "energy for features before the first round"),
    "preparation_s": (SECONDS, "time for features before the first round"),
}
PLANNED: Mapping[str, tuple[str, str]] = {
    "optimal_iterations": (NUMBER, "best number of local iterations, not rounded"),
    "optimal_energy_j": (JOULES, "energy of a round at the best number of iterations"),
    "optimal_utility": (NUMBER, "utility at the best number of iterations"),
    "local_iterations": (NUMBER, "local iterations in a round"),
    "transmit_power_w": (WATTS, "transmit power"),
    "uplink_rate_bps": ("bit/s", "uplink rate"),
    "compute_time_s": (SECONDS, "time for local iterations"),
    "upload_time_s": (SECONDS, "time for the upload"),
    "compute_energy_j": (JOULES, "energy for local iterations"),
    "transmit_energy_j": (JOULES, "energy for the upload"),
    "energy_j": (JOULES, "energy of a round"),
    "utility": (NUMBER, "utility"),
    "outage_fraction": (NUMBER, "share of channel draws without an upload"),
    "failed_upload_fraction": (NUMBER, "share of uploads that fail, since the channel was misjudged"),
    "case": (NUMBER, "most frequent case of the optimum"),
    "case_fraction": (NUMBER, "share of channel draws in each case of the optimum"),
    "reason": (NUMBER, "why the device never takes part"),
    "local_accuracy": (NUMBER, "bound on the accuracy of the local problem"),
    "battery_life_rounds": (NUMBER, "rounds until the battery is empty"),
}
MEASURED: Mapping[str, tuple[str, str]] = {
    "loss": (NUMBER, "loss on the device's data after local training"),
    "received_loss": (NUMBER, "loss on the device's data before local training"),
    "received_accuracy": (NUMBER, "test accuracy of the device's model before local training"),
    "update_norm": (NUMBER, "length of the update before noise"),
    "deviation": (NUMBER, "deviation factor"),
    "noise_std": (NUMBER, "standard deviation of the noise in the copy, in each parameter"),
    "participating": (NUMBER, "took part"),
    "late": (NUMBER, "the update missed the deadline"),
    "delivered": (NUMBER, "the update arrived in time"),
    "cheating": (NUMBER, "misbehaved, as the scenario has it"),
    "findings": (NUMBER, "defences that refused the update"),
    "outage": (NUMBER, "no transmit power met the deadline"),
    "late_age": (NUMBER, "rounds since a late update was sent, where one arrived"),
    "late_weight": (NUMBER, "weight of a late update"),
    "late_dropped": (NUMBER, "a late update was given up"),
    "distance_now_m": (METRES, "distance from the access point in the round"),
    "gradient_fault": (NUMBER, "why the exchange of gradients went without the device"),
    "update_fault": (NUMBER, "why the exchange of updates went without the device"),
    "wall_time_s": (SECONDS, "wall time of training"),
    "uplink_bytes": (BYTES, "length of the answers that were sent"),
    "planned_uplink_bytes": (BYTES, "length of the answers that the plan charges"),
    "gradient_exchange_s": (SECONDS, "wall time of the exchange of gradients"),
    "update_exchange_s": (SECONDS, "wall time of the exchange of updates"),
    "round_s": (SECONDS, "wall time of the round"),
    "global_loss": (NUMBER, "loss of the access point's model on all devices' data"),
    "test_accuracy": (NUMBER, "test accuracy of the access point's model"),
    "test_rmse": ("unit of the labels", "root mean squared test error of the access point's model"),
    "membership_auc": (NUMBER, "how well the model's losses tell training samples from others; 0.5 is guessing"),
    "backdoor_success": (NUMBER, "share of marked test samples taken for the backdoor's class"),
    "samples": (NUMBER, "samples held at first"),
}


def with_units(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with `units` and `long_name` on all variables and coordinates that have a row here, in place."""
    known = {**AXES, **PLANNED, **MEASURED}
    for name in dataset.variables:
        if str(name) in known:
            units, long_name = known[str(name)]
            dataset[name].attrs.update(units=units, long_name=long_name)
    return dataset
