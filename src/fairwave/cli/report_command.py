"""`fairwave report`: a run as a page to read and figures to print."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError, OutputError

if TYPE_CHECKING:
    from fairwave.report.figure_data import PathLossAxis


class PathLoss(enum.StrEnum):
    """What figures are drawn against."""

    DB = "db"
    NORMALISED = "normalised"


def report(
    runs: Annotated[
        list[Path], typer.Argument(show_default=False, metavar="RUN...", help="These are the folders of runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Write to this folder. Default: the run's own folder, or 'report' for several runs."),
    ] = None,
    path_loss: Annotated[
        PathLoss,
        typer.Option(
            help="Draw figures 2 to 4 against this axis: dB, or the devices' places from 0 to 1 as in the paper."
        ),
    ] = PathLoss.DB,
    in_browser: Annotated[
        bool, typer.Option("--open", show_default=False, help="Open the report in a browser.")
    ] = False,
    plugins: Plugins = None,
) -> None:
    """Write one HTML page that opens offline, its figures as SVG, PDF and CSV, and its tables as CSV and LaTeX.

    RUN is the folder of a run. The page says what happened in one sentence. It then shows figures, tables, the
    scenario and what is proved about privacy. A run of the paper's setting with ten rounds or more is compared with
    what the paper publishes. Several runs are first shown together, in one table and in shared figures.

    Examples:

      fairwave report runs/paper --open

      fairwave report runs/paper runs/fair --out both
    """
    from fairwave.plugins import load_plugins

    load_plugins(plugins or ())
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        raise ArgumentError(f"report: two runs are called the same ({', '.join(names)}); rename one")
    write(
        [(name, run) for name, run in zip(names, runs, strict=True)],
        out or (runs[0] if len(runs) == 1 else Path("report")),
        path_loss.value,
        in_browser=in_browser,
    )


def write(
    runs: list[tuple[str, Path]], folder: Path, path_loss: PathLossAxis = "db", *, in_browser: bool = False
) -> None:
    """Write the report of some runs, say what happened in them, and where it is."""
    import webbrowser

    from fairwave.cli.run_reading import read_report
    from fairwave.report.joint_section import joint_verdict
    from fairwave.report.page import write_report
    from fairwave.report.run_verdict import verdict
    from fairwave.report.static_figures import FIGURES

    reports = [read_report(name, run, path_loss) for name, run in runs]
    path = write_report(reports, folder)
    typer.echo(verdict(reports[0].summary()) if len(reports) == 1 else joint_verdict(reports))
    typer.echo(f"report: {path}   (figures: {path.parent / FIGURES})")
    if in_browser and not webbrowser.open(path.resolve().as_uri()):
        raise OutputError(f"--open: no browser could be started; open {path} yourself")
