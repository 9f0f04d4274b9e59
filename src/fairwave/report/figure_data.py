"""The report's figures as plain numbers, for both the interactive and the printed form."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairwave.report.statistics import loss_spread, mean_loss, mean_over_rounds

if TYPE_CHECKING:
    import xarray as xr

MOST_POINTS = 2_000


@dataclasses.dataclass(frozen=True)
class Series:
    """One scheme's line."""

    label: str
    x: np.ndarray
    y: np.ndarray
    spread: np.ndarray | None = None
    """Half the height of the band or bar around each point."""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One figure."""

    key: str
    title: str
    x_label: str
    y_label: str
    caption: str
    series: list[Series]
    joined: bool = True
    """Points are joined by lines."""
    over_rounds: bool = True
    """Spreads are bands along a line; else bars at points."""
    log_x: bool = False
    """The horizontal axis is logarithmic."""


_BY_PATH_LOSS = (
    ("figure-2", "Figure 2: total energy", "energy_j", 1e3, "energy per round (mJ)"),
    ("figure-3a", "Figure 3a: computing energy", "compute_energy_j", 1e3, "computing energy per round (mJ)"),
    ("figure-3b", "Figure 3b: transmission energy", "transmit_energy_j", 1e3, "transmission energy per round (mJ)"),
    ("figure-4a", "Figure 4a: local iterations", "local_iterations", 1.0, "local iterations per round"),
    ("figure-4b", "Figure 4b: uplink rate", "uplink_rate_bps", 1e-6, "uplink rate (Mbit/s)"),
)


def panels(results: xr.Dataset) -> list[Panel]:
    """The paper's figures, then the true model's accuracy."""
    each = [_over_rounds(results)]
    for key, title, name, scale, label in _BY_PATH_LOSS:
        each.append(_by_path_loss(results, key, title, mean_over_rounds(results, name) * scale, label))
    return [*each, _accuracy(results)]


def _over_rounds(results: xr.Dataset) -> Panel:
    loss, spread = mean_loss(results).mean("seed"), loss_spread(results).mean("seed")
    series = [
        Series(str(name), results["round"].values, loss.sel(scheme=name).values, spread.sel(scheme=name).values)
        for name in results["scheme"].values
    ]
    caption = "Mean over devices of the loss on their own data after local training; bands are the std across devices."
    return Panel("figure-1", "Figure 1: training loss", "communication round", "mean training loss", caption, series)


def _accuracy(results: xr.Dataset) -> Panel:
    accuracy = results["test_accuracy"].mean("seed").dropna("round", how="all")
    series = [
        Series(str(name), accuracy["round"].values, accuracy.sel(scheme=name).values)
        for name in results["scheme"].values
    ]
    caption = "Of the access point's own model, on test data; not in the paper."
    return Panel("accuracy", "Test accuracy", "communication round", "test accuracy", caption, series)


def _by_path_loss(results: xr.Dataset, key: str, title: str, values: xr.DataArray, label: str) -> Panel:
    where = results["path_loss_db"].values
    same_places = bool((where == where[:1]).all())
    seeds = results.sizes["seed"]
    series = []
    for name in results["scheme"].values:
        one = values.sel(scheme=name).values
        with warnings.catch_warnings():  # a device that never uploaded, or in one seed only
            warnings.simplefilter("ignore", RuntimeWarning)
            x, y = (where[0], np.nanmean(one, axis=0)) if same_places else (where.ravel(), one.ravel())
            spread = np.nanstd(one, axis=0, ddof=1) if same_places and seeds > 1 else None
        order = np.argsort(x, kind="stable")
        if order.size > MOST_POINTS:
            order = order[np.linspace(0, order.size - 1, MOST_POINTS).astype(int)]
        series.append(Series(str(name), x[order], y[order], None if spread is None else spread[order]))
    bars = "; bars are the std across seeds." if same_places and seeds > 1 else "."
    caption = f"Mean over the rounds in which the device uploaded{bars}"
    return Panel(
        key,
        title,
        "path loss (dB)",
        label,
        caption,
        series,
        joined=same_places and where.shape[1] <= 50,
        over_rounds=False,
    )
