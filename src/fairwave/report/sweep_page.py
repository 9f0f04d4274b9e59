"""The page of a sweep: what every scheme does against every parameter, then all points."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairwave.metrics.intervals import Interval, interval
from fairwave.report.device_losses import LAST
from fairwave.report.figure_data import Panel, Series
from fairwave.report.interactive_figures import panel_html
from fairwave.report.page import write_study
from fairwave.report.style import counted, with_interval
from fairwave.report.sweep_points import FILES, Axis, Row, levels
from fairwave.report.tables import Piece, Sheet

MOST_ROWS = 500
"""Rows of the table on the page; the files beside it have all."""
MEASURES = (
    ("energy_j", "mean energy of devices", "energy per round (mJ)", 1e3, 1),
    ("energy_std_j", "std of energy across devices", "std of energy (mJ)", 1e3, 2),
    ("received_loss", "loss of the received copies", "loss of the received copy", 1.0, 3),
    ("test_accuracy", "test accuracy", "test accuracy", 1.0, 3),
    ("test_rmse", "test RMSE", "test RMSE", 1.0, 3),
)
"""A row's field, title, axis, scale and digits; the last but one is for classes, the last for numbers."""


def write_sweep(rows: Sequence[Row], axes: Sequence[Axis], about: str, folder: Path) -> Path:
    """Write the page, its figures and its table into a folder; the page's path."""
    pieces: list[Piece] = []
    panels: list[Panel] = []
    for axis in axes:
        own = [_panel(rows, axis, *measure[:4]) for measure in _measures(rows)]
        panels += own
        drawn = "".join(f"<div><h3>{panel.title}</h3>{panel_html(panel, 'sweep-')}</div>" for panel in own)
        pieces.append(
            f'<h2>{html.escape(axis.name)}</h2><p class="caption">{html.escape(_caption(rows, axis, axes))}</p>'
            f'<div class="figures">{drawn}</div>'
        )
    return write_study(
        folder,
        title="fairwave: sweep of " + ", ".join(axis.name for axis in axes),
        opening=about,
        pieces=[*pieces, "<h2>All points</h2>", _all_points(rows, axes)],
        panels=panels,
        conclusions=(
            "You may compare the schemes at a point, because they had the same data, channels and initial model.",
            "A trend over one parameter is a mean over the values of the others that were run. It may differ at "
            "other values, and such a mean does not show how parameters act together. The table and the files "
            "have every point.",
            "Intervals show how a mean varies over seeds. They do not cover points that were not run.",
        ),
    )


def _measures(rows: Sequence[Row]) -> list[tuple[str, str, str, float, int]]:
    """What is shown: the test accuracy, or the error of models that predict numbers."""
    left_out = "test_accuracy" if all(row.test_rmse is not None for row in rows) else "test_rmse"
    return [measure for measure in MEASURES if measure[0] != left_out]


def _panel(rows: Sequence[Row], axis: Axis, measure: str, title: str, label: str, scale: float) -> Panel:
    found = levels(rows, axis.name)
    words = any(isinstance(level, str) for level in found)
    x = np.array([str(level) for level in found]) if words else np.array(found, np.float64)
    series = []
    for scheme in dict.fromkeys(row.scheme for row in rows):
        mine = [row for row in rows if row.scheme == scheme]
        means = [_over_seeds([row for row in mine if row.values[axis.name] == level], measure) for level in found]
        spread = np.array([0.0 if np.isnan(mean.low) else 0.5 * (mean.high - mean.low) for mean in means])
        series.append(Series(scheme, x, np.array([mean.mean for mean in means]) * scale, spread * scale))
    return Panel(
        f"{axis.name}-{measure}",
        title,
        axis.name,
        label,
        "",
        series,
        joined=not (axis.scattered or words),
        over_rounds=False,
        log_x=axis.law == "log_uniform",
    )


def _over_seeds(rows: Sequence[Row], measure: str) -> Interval:
    """Over seeds, of each seed's mean over points: the points of a seed are no independent trials."""
    seeds = dict.fromkeys(row.seed for row in rows)
    by_seed = [np.array([getattr(row, measure) for row in rows if row.seed == seed]) for seed in seeds]
    return interval([each[np.isfinite(each)].mean() if np.isfinite(each).any() else np.nan for each in by_seed])


def _caption(rows: Sequence[Row], axis: Axis, axes: Sequence[Axis]) -> str:
    runs = {row.run: row.values[axis.name] for row in rows}
    shares = sorted({sum(value == level for value in runs.values()) for level in runs.values()})
    number = f"{shares[0]} to {counted(shares[-1], 'point')}" if len(shares) > 1 else counted(shares[0], "point")
    others = [other.name for other in axes if other.name != axis.name and not (axis.scattered and other.law)]
    moving = [other.name for other in axes if other.name != axis.name and axis.law and other.law]
    said = f"Each mark is the mean of the {number} with that value, over {', '.join(others)}. " if others else ""
    if moving:
        said += f"{', '.join(moving)} is drawn again for each mark, so marks scatter. "
    seeds = len({row.seed for row in rows})
    bars = f"Bars are 95 % intervals over {seeds} seeds, each seed's points averaged first. " if seeds > 1 else ""
    return (
        f"{said}{bars}Energies are means over the rounds in which a device uploaded; losses are means over devices and "
        f"the last {LAST} rounds; {_measures(rows)[-1][1]} is the access point's model's in the last round."
    )


def _all_points(rows: Sequence[Row], axes: Sequence[Axis]) -> Sheet:
    by_point: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_point.setdefault((row.run, row.scheme), []).append(row)
    lines = [
        (
            *(str(each[0].values[axis.name]) for axis in axes),
            scheme,
            *(_told(each, measure, scale, digits) for measure, _, _, scale, digits in _measures(rows)),
        )
        for (_, scheme), each in list(by_point.items())[:MOST_ROWS]
    ]
    heads = (*(axis.name for axis in axes), "scheme", "energy (mJ)", "std (mJ)", "loss", _measures(rows)[-1][1])
    left = f" The first {MOST_ROWS} of {len(by_point)} rows." if len(by_point) > MOST_ROWS else ""
    caption = f"95 % intervals. {' and '.join(FILES)} have a row for every seed.{left}"
    return Sheet("points", "Means over seeds", caption, heads, lines)


def _told(rows: Sequence[Row], measure: str, scale: float, digits: int) -> str:
    return with_interval(interval([getattr(row, measure) for row in rows]), digits, scale)
