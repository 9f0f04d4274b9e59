"""The report: one HTML page that opens anywhere without a network, and the figures for print beside it."""

from __future__ import annotations

import html
import importlib.resources
import string
from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.privacy.modes.mode import mode_of
from fairwave.private_files import as_private_as_its_folder
from fairwave.report.section import RunReport, section
from fairwave.report.static_figures import write_figures

FILE = "report.html"
FIGURES = "figures"


def write_report(runs: list[RunReport], folder: Path) -> Path:
    """Write the page and the figures into a folder; the page's path."""
    for run in runs:
        write_figures(run.panels, folder / FIGURES / run.name if len(runs) > 1 else folder / FIGURES)
    path = write_page(
        folder / FILE,
        title="fairwave: " + ", ".join(run.name for run in runs),
        opening="Federated learning over a wireless cell, trained for real: every scheme of a run met the same data, "
        "channels and initial model. Drag to zoom, double-click to reset, click a name to hide it.",
        sections="".join(section(run, number) for number, run in enumerate(runs, start=1)),
        conclusions=conclusions(runs),
    )
    for written in (path, folder / FIGURES, *sorted((folder / FIGURES).rglob("*"))):
        as_private_as_its_folder(written)
    return path


def write_page(path: Path, *, title: str, opening: str, sections: str, conclusions: Sequence[str]) -> Path:
    """Write one page that needs no network; its path."""
    from plotly.offline import get_plotlyjs

    template = string.Template((importlib.resources.files("fairwave.report") / "page.html").read_text("utf-8"))
    page = template.substitute(
        title=html.escape(title),
        opening=html.escape(opening),
        sections=sections,
        conclusions="\n".join(f"<li>{html.escape(line)}</li>" for line in conclusions),
        plotly=get_plotlyjs(),
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder") from None
    return path


def conclusions(runs: list[RunReport]) -> list[str]:
    """What these runs support, and what no such run can."""
    seeds = min(run.results.sizes["seed"] for run in runs)
    lines = [
        "You may compare the schemes with each other: they met the same channels, batches and initial model, so that a "
        "difference is the schemes' own.",
        "Energy comes from the paper's model of computing and transmission, not from a measured device; reception and "
        "the access point are free in it.",
        *_about_privacy(runs),
        "Equal energy is not equal benefit: the proposed scheme equalises what devices pay, and near devices may pay "
        "more than under a benchmark.",
        "The paper leaves its benchmark's power open; agreement with its mean energy cut is calibrated where it is "
        "claimed.",
    ]
    if seeds == 1:
        lines.insert(1, "One seed shows what can happen, not how often: run more (--seeds 0..4) before you conclude.")
    else:
        lines.insert(
            1, f"Intervals say how the mean varies over {seeds} seeds of this cell, not over other cells or data."
        )
    return lines


def _about_privacy(runs: list[RunReport]) -> list[str]:
    """What may be concluded about privacy, once for each kind of claim."""
    return list(dict.fromkeys(mode_of(run.privacy.scenario.privacy).conclusion() for run in runs))
