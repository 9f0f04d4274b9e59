"""`fairwave report`: a run as a page to read and figures to print."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError

if TYPE_CHECKING:
    from fairwave.report.figure_data import PathLossAxis
    from fairwave.report.section import RunReport


class PathLoss(enum.StrEnum):
    """What figures are drawn against."""

    DB = "db"
    NORMALISED = "normalised"


def report(
    runs: Annotated[list[Path], typer.Argument(show_default=False, metavar="RUN...", help="Folders of runs.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to. Default: the run's own, or 'report' for several.")
    ] = None,
    path_loss: Annotated[
        PathLoss,
        typer.Option(help="Axis of figures 2 to 4: plain dB, or the devices' places from 0 to 1 as in the paper."),
    ] = PathLoss.DB,
    plugins: Plugins = None,
) -> None:
    """Write one HTML page that opens offline, and its figures as SVG and PDF.

    RUN is the folder of a run; several runs share a page. The page has the paper's figures 1 to 4, all
    that it states beside ours against every benchmark of the run, the scenario, versions, and what may be concluded.

    Example:  fairwave report runs/paper
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
    )


def write(runs: list[tuple[str, Path]], folder: Path, path_loss: PathLossAxis = "db") -> None:
    """Write the report of some runs and say where it is."""
    from fairwave.report.page import FIGURES, write_report

    path = write_report([_read(name, run, path_loss) for name, run in runs], folder)
    typer.echo(f"report: {path}   (figures: {path.parent / FIGURES})")


def _read(name: str, folder: Path, path_loss: PathLossAxis) -> RunReport:
    from fairwave.privacy.ledger import with_unfinished
    from fairwave.report.figure_data import panels
    from fairwave.report.privacy_account import run_account
    from fairwave.report.privacy_history import epsilon_panels
    from fairwave.report.section import RunReport
    from fairwave.runs.session import ended_early, results
    from fairwave.runs.store import RunStore
    from fairwave.scenario.show import to_toml

    store = RunStore(folder)
    dataset, toml = results(store), to_toml(store.order.scenario)
    scenario, notes = store.order.scenario, ended_early(store)
    ledgers, unfinished = store.ledgers(), store.unfinished()
    store.close()
    figures = [*panels(dataset, path_loss), *epsilon_panels(scenario.privacy, with_unfinished(ledgers, unfinished))]
    return RunReport(name, dataset, toml, figures, run_account(scenario, ledgers, unfinished), notes)
