"""From the runs of a study to what its page tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.advantage import Advantage, Recorded, advantage
from fairwave.studies.incentives import FEWEST_ROUNDS, HONEST, SETTINGS, job_name

if TYPE_CHECKING:
    import xarray as xr

_VALUES = ("received_loss", "received_accuracy", "energy_j", "utility", "deviation")
_FLAGS = ("findings", "delivered", "participating")


def advantages(runs: Mapping[str, xr.Dataset], behaviours: Sequence[str]) -> dict[tuple[str, str], list[Advantage]]:
    """The advantage of each behaviour in each setting, seed by seed."""
    found = {}
    for behaviour in behaviours:
        for setting in SETTINGS:
            run = runs[job_name(behaviour, setting.defended)].sel(scheme=setting.scheme)
            calm = runs[job_name(HONEST, setting.defended)].sel(scheme=setting.scheme)
            cheats = run["cheating"].fillna(0).values.any(axis=(0, 1))
            found[behaviour, setting.title] = [
                advantage(_recorded(run, seed), _recorded(calm, seed), cheats, FEWEST_ROUNDS - 1)
                for seed in run["seed"].values
            ]
    return found


def _recorded(run: xr.Dataset, seed: int) -> Recorded:
    """Flags are 0 in rounds that a run did not reach."""
    one = run.sel(seed=seed)
    flags = {name: np.nan_to_num(one[name].values, nan=0.0) for name in _FLAGS}
    return flags | {name: one[name].values for name in _VALUES}
