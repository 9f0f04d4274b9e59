"""`fairwave.plan`: the policies' choices for a whole fleet, as a labelled dataset."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.errors import ArgumentError
from fairwave.extensions import COMPARED, RULES
from fairwave.metrics.variables import with_units
from fairwave.planner.batch import CASE_NAMES, average_plans
from fairwave.planner.tile import AVERAGED
from fairwave.policy.fleet import fleet
from fairwave.policy.passes import kept_to_their_data
from fairwave.policy.rule import Rule
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.fading import NoFading
from fairwave.wireless.hardware import distances_m, too_slow
from fairwave.wireless.path_loss import path_loss_db

if TYPE_CHECKING:
    import xarray as xr

MOST_DRAWS = 10_000_000
TOO_SLOW = "its fewest iterations take longer than the deadline"
OUT_OF_REACH = "full power does not carry its upload in time, in any draw"


def plan(
    scenario: Scenario | str | Path = "paper",
    policies: str | Rule | Iterable[str | Rule] = COMPARED,
    *,
    draws: int | None = None,
    fading: bool = True,
    labels: Sequence[str] | None = None,
    progress: Callable[[int], None] = lambda count: None,
) -> xr.Dataset:
    """What every device would do under each policy, without any training.

    Values are means over channel draws in which the device could upload; all policies meet the same draws.

    Args:
        scenario: A scenario, the name of a preset, or a TOML file.
        policies: One policy or several, each the name of a rule or a `Rule`.
        draws: Number of channel draws. Default: the scenario's number of rounds.
        fading: False for a channel that is its path loss.
        labels: Names of the devices. Default: their numbers.
        progress: Called with the number of plans (devices times draws) done since its last call.

    Returns:
        An xarray dataset with dims policy and device.

    Example:
        >>> planned = plan("small", "proposed", draws=10)
        >>> planned["energy_j"].dims, planned["energy_j"].attrs["units"]
        (('policy', 'device'), 'J')
    """
    import xarray as xr

    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    names = _known(policies)
    if not fading:
        scenario = without_fading(scenario)
    num_draws = 1 if isinstance(scenario.radio.fading, NoFading) and scenario.radio.channel_error_std == 0.0 else draws
    num_draws = scenario.run.num_rounds if num_draws is None else num_draws
    if not 1 <= num_draws <= MOST_DRAWS:
        raise ArgumentError(f"draws: {num_draws} is out of range; average over 1 to {MOST_DRAWS:,} channel draws")
    values = DeviceValues(scenario)
    distance_m = distances_m(scenario, values)
    with double_precision():
        members = fleet(scenario, values)
        if scenario.data.samples_per_device is not None:  # else nobody knows what devices hold before data are read
            members = kept_to_their_data(members, scenario, np.asarray(scenario.data.samples_per_device))
        members = jax.tree.map(np.asarray, members)
    path_gain = np.broadcast_to(members.device.path_gain, distance_m.shape)
    results = {name: average_plans(RULES[name], scenario, members, num_draws, progress) for name in names}

    def stacked(variable: str) -> np.ndarray:
        columns = [results[name].pop(variable) for name in names]
        return columns[0][None] if len(columns) == 1 else np.stack(columns)

    by_device = ("policy", "device")
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {name: (by_device, stacked(name)) for name in AVERAGED}
    for name in ("outage_fraction", "failed_upload_fraction"):
        variables[name] = (by_device, stacked(name))
    variables["case"] = (by_device, stacked("case"))
    never = variables["outage_fraction"][1] == 1.0
    if never.any():
        variables["reason"] = (by_device, _reasons(never, too_slow(members.device)))
    if num_draws > 1:
        variables["case_fraction"] = ((*by_device, "case_name"), stacked("case_fraction"))
    if scenario.learning.smoothness is not None:
        variables["local_accuracy"] = (by_device, stacked("local_accuracy"))
    capacity_j = values("battery_capacity_j")
    if capacity_j is not None:
        per_round_j = np.nan_to_num(variables["energy_j"][1]) * (1.0 - variables["outage_fraction"][1])
        with np.errstate(divide="ignore"):
            variables["battery_life_rounds"] = (by_device, capacity_j / per_round_j)
    described = xr.Dataset(
        variables,
        coords={
            "policy": names,
            "device": list(labels) if labels is not None else np.arange(scenario.cell.num_devices),
            "case_name": CASE_NAMES,
            "distance_m": ("device", distance_m),
            "path_loss_db": ("device", path_loss_db(path_gain)),
        },
        attrs={
            "draws": num_draws,
            "fading": scenario.radio.fading.law,
            "seed": scenario.run.seed,
            "round_s": scenario.cell.deadline_s,
            "fairwave_version": importlib.metadata.version("fairwave"),
        },
    )
    return with_units(described)


def _reasons(never: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Why devices never take part, under every policy; empty for those that do."""
    words = np.array(["", OUT_OF_REACH, TOO_SLOW], dtype=object)
    return np.asarray(words[never.astype(int) + (never & slow[None, :])])


def without_fading(scenario: Scenario) -> Scenario:
    """The same cell over channels that are their path loss, known exactly."""
    radio = scenario.radio.model_copy(update={"fading": NoFading(law="none"), "channel_error_std": 0.0})
    return scenario.model_copy(update={"radio": radio})


def _known(policies: str | Rule | Iterable[str | Rule]) -> list[str]:
    given = [policies] if isinstance(policies, str | Rule) else policies
    names = list(dict.fromkeys(RULES.names_of(given)))
    if not names:
        raise ArgumentError(f"policies: none given; choose from {', '.join(RULES)}")
    for name in names:
        RULES.get(name, "policies")
    return names
