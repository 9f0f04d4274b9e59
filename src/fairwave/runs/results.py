"""Round records as a labelled dataset: dims scheme, seed, round, device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.engine.round_record import (
    BACKDOOR_SUCCESS,
    FAULTS,
    FINDING,
    FROM_PLAN,
    OF_FEDERATED_DEVICES,
    OF_FEDERATED_ROUNDS,
    OF_LATE_UPDATES,
    OF_MOVING_DEVICES,
    PER_DEVICE,
    PER_ROUND,
    TEST_RMSE,
    Arrays,
)
from fairwave.metrics.variables import with_units
from fairwave.runs.faults import Fault, fault_name
from fairwave.runs.order import Track

if TYPE_CHECKING:
    import xarray as xr

HELD = "samples"
"""How many samples each device holds at first."""
Records = Mapping[Track, Sequence[Arrays]]
"""Records of every track, round by round."""
Layouts = Mapping[int, Arrays]
"""Where the devices of each seed stand and what they hold."""


def to_dataset(records: Records, layouts: Layouts, schemes: Sequence[str], seeds: Sequence[int]) -> xr.Dataset:
    """All tracks side by side; one that stopped early or is not done is padded with NaN. Rounds count from 1."""
    import xarray as xr

    most = max(len(rounds) for rounds in records.values())

    def stacked(name: str) -> np.ndarray:
        example = next(rounds[0][name] for rounds in records.values() if rounds)
        return np.stack(
            [[_padded([r[name] for r in records[Track(s, k)]], most, example) for k in seeds] for s in schemes]
        )

    records, legend = _with_findings(records)
    by_device = ("scheme", "seed", "round", "device")
    held = set.intersection(*(set(arrays) for rounds in records.values() for arrays in rounds))
    moving = [name for name in (*OF_LATE_UPDATES, *OF_MOVING_DEVICES, *OF_FEDERATED_DEVICES) if name in held]
    timed = [name for name in (TEST_RMSE, BACKDOOR_SUCCESS, *OF_FEDERATED_ROUNDS) if name in held]
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: (by_device, stacked(name)) for name in (*FROM_PLAN, *PER_DEVICE, "findings", "outage", *moving)
    }
    variables |= {name: (by_device[:3], stacked(name)) for name in (*PER_ROUND, *timed)}
    laid_out = {name: np.stack([layouts[seed][name] for seed in seeds]) for name in layouts[seeds[0]] if name != HELD}
    variables[HELD] = (("seed", "device", "class"), _samples([layouts[seed][HELD] for seed in seeds]))
    dataset = xr.Dataset(
        variables,
        coords={
            "scheme": list(schemes),
            "seed": list(seeds),
            "round": np.arange(1, most + 1),
            "device": np.arange(variables["loss"][1].shape[-1]),
            **{name: (("seed", "device"), values) for name, values in laid_out.items()},
        },
    )
    with_units(dataset)
    for name in (name for name in FAULTS if name in dataset):  # what the numbers mean, as NetCDF's conventions tell it
        flags = {"flag_values": list(map(int, Fault)), "flag_meanings": " ".join(map(fault_name, Fault))}
        dataset[name].attrs.update(flags)
    masks = [1 << bit for bit in range(len(legend))]
    dataset["findings"].attrs.update(flag_masks=masks, flag_meanings=" ".join(legend))
    return dataset


def _samples(held: list[np.ndarray]) -> np.ndarray:
    """Samples of each class, or in all where some seed was stored without its classes."""
    same = len({each.shape for each in held}) == 1
    return np.stack(held if same else [each.sum(axis=1, keepdims=True) for each in held])


def _with_findings(records: Records) -> tuple[Records, list[str]]:
    """The records with all findings in one array, a bit for each; and the legend: their names, from the lowest bit."""
    names = {name for rounds in records.values() for arrays in rounds for name in arrays if name.startswith(FINDING)}
    legend = sorted(name.removeprefix(FINDING) for name in names)

    def joined(arrays: Arrays) -> Arrays:
        bits = np.zeros(arrays["delivered"].shape, np.int32)
        for bit, name in enumerate(legend):
            bits |= arrays.get(FINDING + name, np.zeros_like(bits)).astype(np.int32) << bit
        return {**arrays, "findings": bits}

    return {track: [joined(arrays) for arrays in rounds] for track, rounds in records.items()}, legend


def _padded(rounds: list[np.ndarray], most: int, example: np.ndarray) -> np.ndarray:
    if len(rounds) == most:
        return np.stack(rounds)
    values = np.stack(rounds).astype(np.float64) if rounds else np.empty((0, *example.shape))
    return np.concatenate([values, np.full((most - len(rounds), *example.shape), np.nan)])
