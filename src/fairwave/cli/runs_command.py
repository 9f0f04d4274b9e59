"""`fairwave runs`: what is stored, what came of it, what two runs differ in, and removing one."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.arguments import RunFolder
from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError, FairwaveError, OutputError, StoreError

if TYPE_CHECKING:
    from fairwave.runs.store import RunStore

HIDDEN = ("scenario", "schemes", "seeds", "format")
"""Parts of a run's description that are shown otherwise."""

app = typer.Typer(help="List, show, compare or remove stored runs.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_runs(
    folder: Annotated[
        Path, typer.Option("--in", show_default=False, help="Look in this folder. Default: runs.")
    ] = Path("runs"),
) -> None:
    """List the runs of a folder with date, rounds, test accuracy, energy, its spread, and proved epsilon."""
    from fairwave.report.run_list import LEGEND, list_heads
    from fairwave.runs.database import FILE

    levels = (f"*/{FILE}", f"*/*/{FILE}")  # a study keeps its runs in a folder of its own
    found = sorted(path.parent for level in levels for path in folder.glob(level)) if folder.is_dir() else []
    if not found:
        typer.echo(f"no runs in {folder}; start one with: fairwave run small")
        return
    typer.echo(list_heads())
    for place in found:
        try:
            typer.echo("\n".join(_listed(place)))
        except FairwaveError as error:
            typer.echo(f"{place}: {error}")
    typer.echo(LEGEND)


def _listed(place: Path) -> list[str]:
    """A line for a run, then one for each of its schemes."""
    from fairwave.cli.run_reading import read_numbers
    from fairwave.report.run_list import scheme_lines
    from fairwave.report.style import counted
    from fairwave.runs.store import RunStore

    store = RunStore(place)
    try:
        history, order = store.history(), store.order
        date = f"; {history[0].begun[:10]}" if history else ""
        line = f"{place}: {_progress(store)}{date}; {counted(len(order.seeds), 'seed')}"
        begun = any(store.summary(track).rounds for track in order.tracks())
        return [line, *(scheme_lines(read_numbers(place.name, store).summary()) if begun else ())]
    finally:
        store.close()


@app.command()
def compare(
    one: Annotated[Path, typer.Argument(show_default=False, metavar="RUN", help="This is the folder of a run.")],
    other: Annotated[
        Path, typer.Argument(show_default=False, metavar="OTHER", help="This is the folder of another run.")
    ],
    plugins: Plugins = None,
) -> None:
    """Show how two runs differ: first their scenarios, then their results.

    Example:  fairwave runs compare runs/paper runs/fair
    """
    from fairwave.cli.run_reading import read_numbers
    from fairwave.plugins import load_plugins
    from fairwave.report.run_differences import cautions, order_differences, result_rows, scenario_differences
    from fairwave.report.text_table import CUT, WIDTH, text_table
    from fairwave.runs.store import RunStore

    load_plugins(plugins or ())
    orders, summaries = [], []
    for place in (one, other):
        store = RunStore(place)
        try:
            orders.append(store.order)
            summaries.append(read_numbers(place.name, store).summary())
        finally:
            store.close()
    names = [str(one), str(other)] if one.name == other.name else [one.name, other.name]
    differences = scenario_differences(*(order.scenario for order in orders))
    differences += order_differences(*orders)
    lines = ["the scenarios, rounds and seeds are equal"]
    if differences:
        lines = text_table(("scenario", *names), differences, cut=(0, 1, 2))
    results = result_rows(*summaries)
    if results:
        lines += ["", *text_table(("scheme", "result", *names, "change"), results, cut=(2, 3))]
    if any(CUT in line for line in lines):
        lines += ["", f"{CUT} marks a value that was cut to fit; 'fairwave runs show' has it whole"]
    said = (textwrap.fill(caution, WIDTH) for caution in cautions(*summaries))
    typer.echo("\n".join((*lines, "", *said)).rstrip())


@app.command()
def show(run: RunFolder, plugins: Plugins = None) -> None:
    """Show a run's command, versions and scenario, and the latest round of every scheme and seed."""
    from rich.console import Console

    from fairwave.plugins import load_plugins
    from fairwave.report.run_table import run_table
    from fairwave.runs.session import history_in_words, results
    from fairwave.runs.store import RunStore
    from fairwave.runs.track_states import short_tracks
    from fairwave.scenario.show import to_toml

    load_plugins(plugins or ())
    store = RunStore(run)
    described = {name: value for name, value in store.about.items() if name not in HIDDEN}
    for name, value in (described | history_in_words(store)).items():
        typer.echo(f"{name}: {value}")
    typer.echo("\n".join((f"progress: {_progress(store)}", *short_tracks(store), "")))
    typer.echo(to_toml(store.order.scenario))
    if any(store.summary(track).rounds for track in store.order.tracks()):
        Console(width=None if sys.stdout.isatty() else 120).print(run_table(results(store)))
    store.close()


@app.command()
def rm(
    run: RunFolder,
    yes: Annotated[bool, typer.Option("--yes", show_default=False, help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove a run and everything that fairwave has written into its folder."""
    from fairwave.runs.database import locked
    from fairwave.runs.folder import holds_run

    if not holds_run(run):
        raise StoreError(f"{run}: no run there; see 'fairwave runs list'")
    if not yes:
        if not sys.stdin.isatty():
            raise ArgumentError(f"{run}: removing cannot be undone; confirm it with --yes")
        typer.confirm(f"Remove {run}?", abort=True)
    with locked(run):
        try:
            kept = _remove_ours(run)
        except OSError as error:
            raise OutputError(f"{run}: cannot be removed ({error.strerror}); check its permissions") from None
    typer.echo(f"removed {run}" if not kept else f"removed the run in {run}; left {', '.join(kept)}, which is not ours")


def _remove_ours(folder: Path) -> list[str]:
    """Remove what fairwave writes, and the folder if nothing else is in it; the names of what stays."""
    from fairwave.report.page import FILE as PAGE
    from fairwave.report.sheet_files import FOLDER as TABLES
    from fairwave.report.static_figures import FIGURES
    from fairwave.runs.database import FILE, LOCK
    from fairwave.runs.folder import DEVICES, LOG, LOGS, MODELS, SECRET
    from fairwave.runs.salt import FILE as SALT
    from fairwave.runs.seal import FILE as SEAL
    from fairwave.trackers.mlflow import STORE
    from fairwave.trackers.tensorboard import FOLDER as TENSORBOARD
    from fairwave.trackers.wandb import FOLDER as WANDB

    with (folder / FILE).open("rb") as stream:
        if stream.read(15) not in (b"SQLite format 3", b""):
            raise StoreError(f"{folder / FILE}: not a run of fairwave; remove it by hand if you want to")
    figures, tables = folder / FIGURES, folder / TABLES
    ours = [folder / name for name in (FILE, f"{FILE}-journal", SEAL, SALT, PAGE, LOCK, STORE)]
    ours += [path for form in ("svg", "pdf", "csv") for path in figures.glob(f"*.{form}")]
    ours += [path for form in ("csv", "tex") for path in tables.glob(f"*.{form}")]
    ours += [folder / LOG, *folder.glob(f"{LOG}.[1-9]"), folder / SECRET, *folder.glob("asked-*.json")]
    for path in ours:
        path.unlink(missing_ok=True)
    for place in (folder / name for name in (DEVICES, MODELS, LOGS, TENSORBOARD, WANDB)):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
    for place in (figures, tables, folder):
        if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
            place.rmdir()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def _progress(store: RunStore) -> str:
    order = store.order
    summaries = [store.summary(track) for track in order.tracks()]
    done = sum(order.rounds if now.ended is not None else now.rounds for now in summaries)
    total = order.rounds * len(summaries)
    return "done" if done == total else f"{done} of {total} rounds"
