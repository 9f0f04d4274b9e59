"""What devices would spend with another deadline, bandwidth or payload: one at a time, all else the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.extensions import RULES
from fairwave.planner.batch import average_plans
from fairwave.planner.plan import without_fading
from fairwave.policy.fleet import Fleet, fleet
from fairwave.policy.passes import kept_to_their_data
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.physical_device import Device

if TYPE_CHECKING:
    import xarray as xr

FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
"""Multiples of a parameter's own value; 1 is the plan itself."""
VARIED = {"cell.deadline_s": "deadline_s", "radio.bandwidth_hz": "bandwidth_hz", "radio.payload_bits": "payload_bits"}
"""Parameters, and the field of a device in which each is."""
MOST_DEVICES = 1000
"""Devices of a large fleet that questions are answered for, evenly picked."""
MOST_DRAWS = 200


def what_if(scenario: Scenario, policies: Iterable[str], *, draws: int, fading: bool = True) -> xr.Dataset:
    """Energies, iterations and outages for multiples of each parameter: dims parameter, policy, factor.

    Means are over devices; `most_energy_j` is that of the device that spends most, and `battery_life_rounds` that of
    the battery that is empty first, where a capacity is given. `value` is the parameter's own, or the median of devices
    that differ.
    """
    import xarray as xr

    scenario = scenario if fading else without_fading(scenario)
    names, values = list(policies), DeviceValues(scenario)
    picked = np.unique(np.linspace(0, scenario.cell.num_devices - 1, MOST_DEVICES).round().astype(int))
    with double_precision():
        members = fleet(scenario, values)
        if scenario.data.samples_per_device is not None:
            members = kept_to_their_data(members, scenario, np.asarray(scenario.data.samples_per_device))
        members = jax.tree.map(lambda leaf: np.asarray(leaf)[picked] if np.ndim(leaf) else np.asarray(leaf), members)
    few = scenario.model_copy(update={"cell": scenario.cell.model_copy(update={"num_devices": picked.size})})
    capacity_j = values("battery_capacity_j")
    if capacity_j is not None and capacity_j.ndim:
        capacity_j = capacity_j[picked]
    found = [
        [
            [
                _answer(name, few, _scaled(members, field, factor), min(draws, MOST_DRAWS), capacity_j)
                for factor in FACTORS
            ]
            for name in names
        ]
        for field in VARIED.values()
    ]
    dims = ("parameter", "policy", "factor")
    own = [float(np.median(getattr(members.device, field))) for field in VARIED.values()]
    return xr.Dataset(
        {
            key: (dims, np.array([[[each[key] for each in row] for row in block] for block in found]))
            for key in found[0][0][0]
        }
        | {"value": (("parameter", "factor"), np.outer(own, FACTORS))},
        coords={"parameter": list(VARIED), "policy": names, "factor": list(FACTORS)},
        attrs={"devices": picked.size},
    )


def _scaled(members: Fleet, field: str, factor: float) -> Fleet:
    device: Device = dataclasses.replace(members.device, **{field: getattr(members.device, field) * factor})
    return dataclasses.replace(members, device=device)


def _answer(
    name: str, scenario: Scenario, members: Fleet, draws: int, capacity_j: np.ndarray | None
) -> dict[str, float]:
    """One policy with one value: what is drawn of all devices."""
    planned = average_plans(RULES[name], scenario, members, draws, lambda count: None)
    energy_j, uploaded = planned["energy_j"], 1.0 - planned["outage_fraction"]
    never = not np.isfinite(energy_j).any()
    answer = {
        "energy_j": np.nan if never else float(np.nanmean(energy_j)),
        "most_energy_j": np.nan if never else float(np.nanmax(energy_j)),
        "local_iterations": np.nan if never else float(np.nanmean(planned["local_iterations"])),
        "outage_fraction": float(np.mean(planned["outage_fraction"])),
    }
    if capacity_j is not None:
        spent_j = np.nan_to_num(energy_j) * uploaded
        with np.errstate(divide="ignore"):
            answer["battery_life_rounds"] = float(np.min(capacity_j / spent_j))
    return answer
