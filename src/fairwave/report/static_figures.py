"""Figures for print: SVG and PDF, one column wide."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairwave.errors import OutputError
from fairwave.report.figure_data import Panel
from fairwave.report.style import COLOURS, LIMITS_COLOUR, LIMITS_LABEL, MARKERS, STATIC

FIGURES = "figures"
"""The folder of figures beside a page."""
FORMATS = ("svg", "pdf")
_STYLES = ("-", "--", ":", "-.")
"""Lines of equal colour, where there are more than colours, differ in these, as on the page."""
_STILL = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write_figures(panels: list[Panel], folder: Path) -> list[Path]:
    """Every panel in every format; the files."""
    return [
        path
        for panel in panels
        for path in _write(functools.partial(_draw, panel=panel), panel.key, folder, (3.5, 2.6))
    ]


def write_heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    key: str,
    folder: Path,
) -> list[Path]:
    """A table in colours, blue below zero and red above, with a text in every cell; the files."""

    def draw(axis: Any) -> None:
        reach = min(100.0, float(np.nanmax(np.abs(values), initial=1.0)))
        axis.imshow(values, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto", alpha=0.7)
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), rows)
        for row, cells in enumerate(texts):
            for column, text in enumerate(cells):
                colour = "white" if abs(values[row, column]) > 0.7 * reach else "black"
                axis.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)

    return _write(draw, key, folder, (7.0, 0.7 + 0.24 * len(rows)))


def _write(draw: Callable[[Any], None], key: str, folder: Path, size: tuple[float, float]) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with pyplot.rc_context(STATIC):
            figure, axis = pyplot.subplots(figsize=size, layout="constrained")
            draw(axis)
            for form in FORMATS:
                path = folder / f"{key}.{form}"
                figure.savefig(path, metadata=_STILL[form])
                written.append(path)
            pyplot.close(figure)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose a writable folder") from None
    return written


def _draw(axis: Any, panel: Panel) -> None:
    points = max(line.x.size for line in panel.series)
    for index, line in enumerate(panel.series):
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[index // len(COLOURS) % len(_STYLES)]
        look = {"color": colour, "linewidth": 1.3, "label": line.label, "linestyle": style}
        if not panel.over_rounds:
            look |= {"marker": MARKERS[index % len(MARKERS)], "markersize": 3.5 if points <= 50 else 1.0}
            look["linestyle"] = style if panel.joined else "none"
            ends = line.ends()
            bars = None if ends is None else np.abs(np.stack(ends) - line.y)
            axis.errorbar(line.x, line.y, yerr=bars, capsize=2, elinewidth=0.8, **look)
            continue
        axis.plot(line.x, line.y, marker="o" if points == 1 else None, **look)
        if (ends := line.ends()) is not None:
            axis.fill_between(line.x, *ends, color=colour, alpha=0.18, linewidth=0)
    if panel.limits is not None:
        along, limits = (panel.limits.start, panel.limits.end), (panel.limits.low, panel.limits.high)
        look = {"color": LIMITS_COLOUR, "linestyle": "--", "linewidth": 0.8}
        for height, label in zip(limits, (LIMITS_LABEL, None), strict=True):
            axis.plot(along, (height, height), label=label, **look)
    if panel.log_x:
        axis.set_xscale("log")
    if panel.over_rounds:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=7)
