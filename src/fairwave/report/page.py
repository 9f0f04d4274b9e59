"""The report: one HTML page that opens anywhere without a network, and the figures and tables beside it as files."""

from __future__ import annotations

import html
import importlib.resources
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.privacy.modes.mode import mode_of
from fairwave.private_files import as_private_as_its_folder
from fairwave.report.figure_data import Panel
from fairwave.report.joint_section import joint_part, joint_verdict
from fairwave.report.plotly_script import plotly_script
from fairwave.report.section import Part, RunReport, opening, parts, section, sheets_of
from fairwave.report.sheet_files import FOLDER as TABLES
from fairwave.report.sheet_files import write_figure_data, write_sheets
from fairwave.report.static_figures import FIGURES, write_figures
from fairwave.report.tables import Piece, Sheet, pieces_html

FILE = "report.html"
CONCLUSIONS = "conclusions"


def write_report(runs: list[RunReport], folder: Path) -> Path:
    """Write the page, figures and tables into a folder; the page's path.

    Several runs are first shown together, then one by one.
    """
    places = [run.name if len(runs) > 1 else "" for run in runs]
    found = [parts(run, number, place) for number, (run, place) in enumerate(zip(runs, places, strict=True), start=1)]
    joint = joint_part(runs) if len(runs) > 1 else None
    for run, place, own in zip(runs, places, found, strict=True):
        _write_files(run.panels, own, folder, place)
    if joint is not None:
        _write_files(joint.panels, [joint.part], folder, "")
    first = opening(runs[0]) if joint is None else f'<p class="verdict">{html.escape(joint_verdict(runs))}</p>'
    path = write_page(
        folder / FILE,
        title="fairwave: " + ", ".join(run.name for run in runs),
        opening="",
        first=first + _contents(runs, found, None if joint is None else joint.part),
        sections=("" if joint is None else section([joint.part]))
        + "".join(
            (
                f'<h2 class="run" id="run-{number}">{html.escape(run.name)}</h2>{opening(run)}'
                if joint is not None
                else ""
            )
            + section(own, place)
            for number, (run, own, place) in enumerate(zip(runs, found, places, strict=True), start=1)
        ),
        conclusions=conclusions(runs),
    )
    for place in (FIGURES, TABLES):
        for written in (folder / place, *sorted((folder / place).rglob("*"))):
            as_private_as_its_folder(written)
    as_private_as_its_folder(path)
    return path


def write_page(
    path: Path, *, title: str, opening: str, sections: str, conclusions: Sequence[str], first: str = ""
) -> Path:
    """Write one page that needs no network; its path.

    `opening` is a sentence on what the page is about; `first`, HTML that is to be seen before anything else.
    """
    resources = importlib.resources.files("fairwave.report")
    template = string.Template((resources / "page.html").read_text("utf-8"))
    page = template.substitute(
        title=html.escape(title),
        style=(resources / "page.css").read_text("utf-8"),
        opening=f'<p class="quiet">{html.escape(opening)}</p>' if opening else "",
        first=first,
        sections=sections,
        conclusions="\n".join(f"<li>{html.escape(line)}</li>" for line in conclusions),
        plotly=plotly_script(),
        script=(resources / "page.js").read_text("utf-8"),
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder") from None
    return path


def write_study(
    folder: Path,
    *,
    title: str,
    opening: str,
    pieces: Sequence[Piece],
    conclusions: Sequence[str],
    panels: Sequence[Panel] = (),
) -> Path:
    """Write the page of a study into a folder, with its tables and the data of its figures as files; the page's path.

    `panels` are the figures that `pieces` draws.
    """
    write_figures(list(panels), folder / FIGURES)
    write_figure_data(panels, folder / FIGURES)
    write_sheets((piece for piece in pieces if isinstance(piece, Sheet)), folder / TABLES)
    sections = pieces_html(pieces, TABLES)
    return write_page(folder / FILE, title=title, opening=opening, sections=sections, conclusions=conclusions)


def conclusions(runs: list[RunReport]) -> list[str]:
    """What these runs support, and what no such run can."""
    seeds = min(run.results.sizes["seed"] for run in runs)
    lines = [
        "You may compare the schemes of a run with each other. They had the same channels, batches and "
        "initial model, so the schemes alone make the difference.",
        "Energy comes from the paper's model of computing and transmission, and not from a measured device. "
        "The model does not count reception or the access point.",
        *_about_privacy(runs),
        "Equal energy is not equal benefit. The proposed scheme equalises what devices pay, and near devices "
        "may pay more than under a benchmark.",
        "The paper does not say which power its benchmark uses. Where agreement with its mean energy cut is "
        "claimed, it was calibrated.",
    ]
    if seeds == 1:
        lines.insert(
            1,
            "One seed shows what can happen, but not how often. Run more seeds (--seeds 0..4) before you draw "
            "conclusions.",
        )
    else:
        lines.insert(
            1,
            f"Intervals show how the mean varies over {seeds} seeds of this cell. They do not cover other cells or "
            "data.",
        )
    return lines


def _about_privacy(runs: list[RunReport]) -> list[str]:
    """What may be concluded about privacy, once for each kind of claim."""
    return list(dict.fromkeys(mode_of(run.privacy.scenario.privacy).conclusion() for run in runs))


def _write_files(panels: Iterable[Panel], found: Sequence[Part], folder: Path, place: str) -> None:
    write_figures(list(panels), folder / FIGURES / place)
    write_figure_data(panels, folder / FIGURES / place)
    write_sheets(sheets_of(found), folder / TABLES / place)


def _contents(runs: Sequence[RunReport], found: Sequence[Sequence[Part]], joint: Part | None) -> str:
    """Links to every part of the page."""
    items = [] if joint is None else [_link(joint.key, joint.title)]
    for number, (run, own) in enumerate(zip(runs, found, strict=True), start=1):
        links = [_link(part.key, part.title) for part in own]
        items += links if joint is None else [f"{_link(f'run-{number}', run.name)} ({', '.join(links)})"]
    items.append(_link(CONCLUSIONS, "What you may conclude"))
    return f'<nav aria-label="Contents"><ul>{"".join(f"<li>{item}</li>" for item in items)}</ul></nav>'


def _link(key: str, title: str) -> str:
    return f'<a href="#{html.escape(key)}">{html.escape(title)}</a>'
