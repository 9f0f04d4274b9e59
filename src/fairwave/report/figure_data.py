"""The report's figures as plain numbers, for both the interactive and the printed form."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Literal

import numpy as np

from fairwave.metrics.published import AXES, BY_PATH_LOSS, LOSS_AXIS, SHOWN_ROUNDS, Axis
from fairwave.report.statistics import (
    has_classes,
    in_order_of_path_loss,
    labelled,
    loss_spread,
    mean_loss,
    mean_over_rounds,
    tested_measure,
)

if TYPE_CHECKING:
    import xarray as xr

MOST_POINTS = 2_000
PathLossAxis = Literal["db", "normalised"]
"""Path loss in dB, or as in the paper's figures: the devices' places from the nearest, 0, to the farthest, 1."""


@dataclasses.dataclass(frozen=True)
class Series:
    """One scheme's line."""

    label: str
    x: np.ndarray
    y: np.ndarray
    spread: np.ndarray | None = None
    """Half the height of the band or bar around each point."""

    def ends(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Both ends of the band or bars; none of a quantity that is never below 0 reaches below it."""
        if self.spread is None:
            return None
        low = self.y - self.spread
        return (np.maximum(low, 0.0) if np.nanmin(self.y, initial=0.0) >= 0.0 else low), self.y + self.spread


@dataclasses.dataclass(frozen=True)
class Limits:
    """The vertical axis of the paper's figure, and how far it reaches along the horizontal one."""

    low: float
    high: float
    start: float
    end: float


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
    limits: Limits | None = None
    """Where the paper's axis ends; none where it has no such figure, or where no curve lies on its axis."""


_NAMES = {
    "loss": "training loss",
    "energy_j": "total energy",
    "compute_energy_j": "computing energy",
    "transmit_energy_j": "transmission energy",
    "local_iterations": "local iterations",
    "uplink_rate_bps": "uplink rate",
}
_LABELS = {
    "energy_j": "energy per round (mJ)",
    "compute_energy_j": "computing energy per round (mJ)",
    "transmit_energy_j": "transmission energy per round (mJ)",
    "local_iterations": "local iterations per round",
    "uplink_rate_bps": "uplink rate (Mbit/s)",
}
_X_LABELS: dict[PathLossAxis, str] = {"db": "path loss (dB)", "normalised": "normalised path loss of devices"}
_LIMITS = " Dashed lines are the ends of the paper's axis."


def figure_title(axis: Axis) -> str:
    """The name of a figure of the paper."""
    return f"Figure {axis.figure}: {_NAMES[axis.variable]}"


def _named(axis: Axis) -> str:
    return _NAMES[axis.variable].capitalize()


def panels(results: xr.Dataset, path_loss: PathLossAxis = "db", *, paper_axes: bool = True) -> list[Panel]:
    """The paper's figures, with or without the ends of its axes, then how good the true model is on test data."""
    by_path_loss = [_by_path_loss(results, axis, path_loss) for axis in AXES if axis.variable in BY_PATH_LOSS]
    papers = [_over_rounds(results), *by_path_loss]
    return [*(papers if paper_axes else map(without_limits, papers)), _tested(results)]


def without_limits(panel: Panel) -> Panel:
    """A figure without the ends of the paper's axis, and without the words for them."""
    return dataclasses.replace(panel, limits=None, caption=panel.caption.removesuffix(_LIMITS))


def _over_rounds(results: xr.Dataset) -> Panel:
    loss, spread = mean_loss(results).mean("seed"), loss_spread(results).mean("seed")
    series = [
        Series(
            labelled(results, str(name)),
            results["round"].values,
            loss.sel(scheme=name).values,
            spread.sel(scheme=name).values,
        )
        for name in results["scheme"].values
    ]
    limits = _limits(LOSS_AXIS, series, 0.0, float(min(SHOWN_ROUNDS, results["round"].values[-1])))
    caption = (
        "Mean over devices of the loss on their own data after local training; bands are the std across devices. The "
        f"paper's figure {LOSS_AXIS.figure}."
    )
    return Panel(
        "figure-1",
        _named(LOSS_AXIS),
        "communication round",
        "mean training loss",
        caption + (_LIMITS if limits else ""),
        series,
        limits=limits,
    )


def _limits(axis: Axis, series: list[Series], start: float, end: float) -> Limits | None:
    """The ends of the paper's axis if a curve lies on it: far from all curves, they would only make these small."""
    met = any(((line.y >= axis.low) & (line.y <= axis.high)).any() for line in series)
    return Limits(axis.low, axis.high, start, end) if met else None


def _tested(results: xr.Dataset) -> Panel:
    measure, in_words = tested_measure(results)
    known = results[measure].mean("seed").dropna("round", how="all")
    series = [
        Series(labelled(results, str(name)), known["round"].values, known.sel(scheme=name).values)
        for name in results["scheme"].values
    ]
    key, said = ("accuracy", "Accuracy") if has_classes(results) else ("rmse", "Root mean squared error")
    caption = f"{said} of the access point's own model on test data; not in the paper."
    return Panel(key, f"T{in_words[1:]}", "communication round", in_words, caption, series)


def _by_path_loss(results: xr.Dataset, axis: Axis, path_loss: PathLossAxis) -> Panel:
    values = axis.per_unit * mean_over_rounds(results, axis.variable).transpose("scheme", "seed", "device")
    where = results["path_loss_db"].values
    if path_loss == "normalised":
        values = in_order_of_path_loss(results, values)
        where = np.broadcast_to(np.linspace(0.0, 1.0, where.shape[1]), where.shape)
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
        label = labelled(results, str(name))  # means over rounds hide that a scheme has fewer of them
        series.append(Series(label, x[order], y[order], None if spread is None else spread[order]))
    limits = _limits(axis, series, float(where.min()), float(where.max()))
    bars = "; bars are the std across seeds." if same_places and seeds > 1 else "."
    return Panel(
        f"figure-{axis.figure}",
        _named(axis),
        _X_LABELS[path_loss],
        _LABELS[axis.variable],
        f"Mean over the rounds in which the device uploaded{bars} The paper's figure {axis.figure}."
        + (_LIMITS if limits else ""),
        series,
        joined=same_places and where.shape[1] <= 50,
        over_rounds=False,
        limits=limits,
    )
