"""Round records as a labelled dataset: dims scheme, seed, round, device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.engine.state import RoundRecord
from fairwave.policy.plan import Case

if TYPE_CHECKING:
    import xarray as xr

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
PER_DEVICE = ("loss", "received_loss", "update_norm", "deviation", "noise_std", "delivered")
PER_ROUND = ("global_loss", "test_accuracy")

Runs = Mapping[tuple[str, int], Sequence[RoundRecord]]
"""Records of every (scheme, seed), round by round."""


def to_dataset(runs: Runs, schemes: Sequence[str], seeds: Sequence[int]) -> xr.Dataset:
    """All runs side by side; a run that stopped early is padded with NaN. Rounds are numbered from 1."""
    import xarray as xr

    most = max(len(records) for records in runs.values())

    def stacked(name: str) -> np.ndarray:
        return np.stack([[_padded([_value(r, name) for r in runs[s, k]], most) for k in seeds] for s in schemes])

    by_device = ("scheme", "seed", "round", "device")
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: (by_device, stacked(name)) for name in (*FROM_PLAN, *PER_DEVICE, "outage")
    }
    variables |= {name: (by_device[:3], stacked(name)) for name in PER_ROUND}
    num_devices = variables["loss"][1].shape[-1]
    coords = {
        "scheme": list(schemes),
        "seed": list(seeds),
        "round": np.arange(1, most + 1),
        "device": np.arange(num_devices),
    }
    return xr.Dataset(variables, coords=coords)


def _value(record: RoundRecord, name: str) -> np.ndarray:
    if name == "outage":
        return np.equal(record.plan.case, int(Case.OUTAGE))
    return np.asarray(getattr(record.plan if name in FROM_PLAN else record, name))


def _padded(rounds: list[np.ndarray], most: int) -> np.ndarray:
    values = np.stack(rounds)
    if len(rounds) == most:
        return values
    missing = np.full((most - len(rounds), *values.shape[1:]), np.nan)
    return np.concatenate([values.astype(np.float64), missing])
