"""From the runs of a study to what its page tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.advantage import Advantage, Recorded, advantage
from fairwave.studies.incentives import FIRST_ROUND, HONEST, SETTINGS, job_name

if TYPE_CHECKING:
    import xarray as xr

SETTLING = 2
"""Rounds after the first misbehaviour that are not counted."""
_NAMES = (
    "received_loss", "received_accuracy", "energy_j", "utility", "deviation", "findings", "delivered", "participating",
)  # fmt: skip


def advantages(runs: Mapping[str, xr.Dataset], behaviours: Sequence[str]) -> dict[tuple[str, str], list[Advantage]]:
    """Of each behaviour and setting, seed by seed."""
    found = {}
    for behaviour in behaviours:
        for setting in SETTINGS:
            run = runs[job_name(behaviour, setting.defended)].sel(scheme=setting.scheme)
            calm = runs[job_name(HONEST, setting.defended)].sel(scheme=setting.scheme)
            cheats = run["cheating"].fillna(0).values.any(axis=(0, 1))
            first = min(FIRST_ROUND - 1 + SETTLING, run.sizes["round"] - 1)
            found[behaviour, setting.title] = [
                advantage(_recorded(run, seed), _recorded(calm, seed), cheats, first) for seed in run["seed"].values
            ]
    return found


def _recorded(run: xr.Dataset, seed: int) -> Recorded:
    one = run.sel(seed=seed)
    return {name: np.nan_to_num(one[name].values, nan=0.0) if name in ("findings", "delivered", "participating")
            else one[name].values for name in _NAMES}  # fmt: skip
