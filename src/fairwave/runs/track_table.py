"""Where every scheme of a run stands after its last round, for the short form of runs and simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairwave.engine.round_record import TEST_RMSE

if TYPE_CHECKING:
    import xarray as xr

HEADS = ("scheme", "rounds", "loss", "test accuracy", "energy (mJ)")
HEADS_OF_NUMBERS = ("scheme", "rounds", "loss", "test RMSE", "energy (mJ)")


def heads_for(results: xr.Dataset) -> tuple[str, ...]:
    """The columns."""
    return HEADS_OF_NUMBERS if TEST_RMSE in results else HEADS


def track_rows(results: xr.Dataset) -> list[tuple[str, ...]]:
    """A row for each scheme: rounds, and the means over its seeds of what their last rounds came to."""
    measure = TEST_RMSE if TEST_RMSE in results else "test_accuracy"
    rows: list[tuple[str, ...]] = []
    for scheme in results["scheme"].values:
        one = results.sel(scheme=scheme)
        rounds = int((~np.isnan(one["loss"].values)).any(axis=-1).sum(axis=-1).max(initial=0))
        loss, tested = (
            _mean([_last(seed) for seed in one[name].transpose("seed", "round", ...).values])
            for name in ("loss", measure)
        )
        uploads = np.asarray(one["energy_j"].values)[np.nan_to_num(one["delivered"].values).astype(bool)]
        rows.append((str(scheme), str(rounds), _shown(loss), _shown(tested), _shown(1e3 * _mean(list(uploads)), ".1f")))
    return rows


def _last(values: np.ndarray) -> float:
    """The mean over devices in the last round that has a value."""
    flat = values.reshape(len(values), -1)
    known = [row for row in flat if not np.isnan(row).all()]
    return float(np.nanmean(known[-1])) if known else float("nan")


def _mean(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _shown(value: float, form: str = ".3f") -> str:
    return "unknown" if np.isnan(value) else format(value, form)
