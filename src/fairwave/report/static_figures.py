"""Figures for print: SVG and PDF, one column wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairwave.errors import OutputError
from fairwave.report.figure_data import Panel
from fairwave.report.style import COLOURS, MARKERS, STATIC

FORMATS = ("svg", "pdf")
_STILL = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write_figures(panels: list[Panel], folder: Path) -> list[Path]:
    """Every panel in every format; the files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with pyplot.rc_context(STATIC):
            for panel in panels:
                figure, axis = pyplot.subplots(figsize=(3.5, 2.6), layout="constrained")
                _draw(axis, panel)
                for form in FORMATS:
                    path = folder / f"{panel.key}.{form}"
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
        look = {"color": colour, "linewidth": 1.3, "label": line.label}
        if not panel.over_rounds:
            look |= {"marker": MARKERS[index % len(MARKERS)], "markersize": 3.5 if points <= 50 else 1.0}
            look["linestyle"] = "-" if panel.joined else "none"
            axis.errorbar(line.x, line.y, yerr=line.spread, capsize=2, elinewidth=0.8, **look)
            continue
        axis.plot(line.x, line.y, marker="o" if points == 1 else None, **look)
        if line.spread is not None:
            axis.fill_between(line.x, line.y - line.spread, line.y + line.spread, color=colour, alpha=0.18, linewidth=0)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=7)
