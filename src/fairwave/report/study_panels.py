"""Pages of studies that are mostly figures: loss against energy, and whether best responses settle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.intervals import Interval, interval
from fairwave.report.device_losses import LAST
from fairwave.report.figure_data import Panel, Series
from fairwave.report.interactive_figures import panel_html
from fairwave.report.page import write_study
from fairwave.report.statistics import mean_over_rounds
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

if TYPE_CHECKING:
    import xarray as xr

SETTLED = 1.0
"""Iterations within which an answer has settled."""


def write_pareto(runs: Mapping[str, xr.Dataset], about: str, folder: Path) -> Path:
    """Loss of the received copies against energy per round, a line per scheme."""
    points: dict[str, list[tuple[str, Interval, Interval]]] = {}
    for name, results in runs.items():
        for scheme in map(str, results["scheme"].values):
            energy = interval(mean_over_rounds(results, "energy_j").sel(scheme=scheme).mean("device").values * 1e3)
            copies = results["received_loss"].sel(scheme=scheme).isel(round=slice(-LAST, None))
            points.setdefault(scheme, []).append((name, energy, interval(copies.mean(("round", "device")).values)))
    series, rows = [], []
    for scheme, found in points.items():
        found.sort(key=lambda point: point[1].mean)
        spread = np.array([0.0 if np.isnan(loss.low) else 0.5 * (loss.high - loss.low) for _, _, loss in found])
        series.append(
            Series(scheme, np.array([e.mean for _, e, _ in found]), np.array([m.mean for *_, m in found]), spread)
        )
        rows += [(scheme, name, with_interval(energy, 1), with_interval(loss)) for name, energy, loss in found]
    caption = f"Values are means over devices and the last {LAST} rounds. Bars are 95 % intervals over seeds."
    panel = Panel(
        "pareto",
        "Loss against energy",
        "energy per device and round (mJ)",
        "loss of the received copy",
        caption,
        series,
        over_rounds=False,
    )
    heads = ("scheme", "limit", "energy (mJ)", "loss")
    return write_study(
        folder,
        title="fairwave: loss against energy",
        opening=about,
        pieces=(_figure(panel), Sheet("pareto", "In numbers", caption, heads, rows)),
        panels=[panel],
        conclusions=(
            "A scheme is worth its energy at a point if no other point is both to the left of it and below it.",
            "The figure has schemes with noise in their copies and schemes without. Compare only schemes of the "
            "same kind.",
        ),
    )


def write_responses(runs: Mapping[str, xr.Dataset], about: str, folder: Path) -> Path:
    """Iterations that devices choose, round by round, and by how much they still move at the end."""
    panels, rows, sentences = [], [], []
    for fit, results in runs.items():
        chosen = results["optimal_iterations"].isel(scheme=0)
        series = [
            Series(f"device {device}", results["round"].values, chosen.isel(device=device).mean("seed").values)
            for device in sorted({0, results.sizes["device"] // 2, results.sizes["device"] - 1})
        ]
        caption = "Values are means over seeds of the iterations that suit the device best. The channel is constant."
        panels.append(
            Panel(f"responses-{fit}", f"Effort fit '{fit}'", "communication round", "best iterations", caption, series)
        )
        tail = chosen.isel(round=slice(-max(2, results.sizes["round"] // 3), None))
        moves = float((tail.max("round") - tail.min("round")).max())
        last = chosen.isel(round=-1).mean("device").values
        rows.append((fit, f"{moves:.2f}", with_interval(interval(last), 1)))
        settled = moves <= SETTLED
        sentences.append(f"with '{fit}' the answers {'settle' if settled else 'do not settle'}")
    heads = (
        "effort fit",
        "largest movement of any device and seed in the last third (iterations)",
        "mean iterations at the end",
    )
    numbers = Sheet("responses", "In numbers", "Intervals are over seeds.", heads, rows)
    return write_study(
        folder,
        title="fairwave: do best responses settle?",
        opening=about,
        pieces=(f"<h2>Best answers: {'; '.join(sentences)}.</h2>", *map(_figure, panels), numbers),
        panels=panels,
        conclusions=(
            "'Settled' means that in the last third of the rounds, no device's best response changes by more than "
            f"{SETTLED:g} iteration.",
            "The study shows how devices behave that learn only from their own deviations. It proves no "
            "equilibrium of a game.",
        ),
    )


def _figure(panel: Panel) -> str:
    return f'<h3>{panel.title}</h3><p class="caption">{panel.caption}</p>{panel_html(panel, "study-")}'
