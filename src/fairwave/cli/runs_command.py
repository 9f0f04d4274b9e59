"""`fairwave runs`: what is stored, how far it is, and removing it."""

from __future__ import annotations

import shutil
import sys
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

app = typer.Typer(help="Look at stored runs, or remove them.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Option("--in", show_default=False, help="Where to look. Default: runs.")] = Path(
        "runs"
    ),
) -> None:
    """List the runs of a folder: how far each is, and what it compares."""
    from fairwave.runs.database import FILE
    from fairwave.runs.store import RunStore

    levels = (f"*/{FILE}", f"*/*/{FILE}")  # a study keeps its runs in a folder of its own
    found = sorted(path.parent for level in levels for path in folder.glob(level)) if folder.is_dir() else []
    if not found:
        typer.echo(f"no runs in {folder}; start one with: fairwave run small")
    for place in found:
        try:
            store = RunStore(place)
            order = store.order
        except FairwaveError as error:
            typer.echo(f"{place}: {error}")
            continue
        typer.echo(f"{place}: {_progress(store)}; {', '.join(order.schemes)}; seeds {', '.join(map(str, order.seeds))}")
        store.close()


@app.command()
def show(run: RunFolder, plugins: Plugins = None) -> None:
    """Show a run: its command, versions, scenario, and every track's latest round."""
    from rich.console import Console

    from fairwave.plugins import load_plugins
    from fairwave.report.run_table import run_table
    from fairwave.runs.session import ended_early, history_in_words, results
    from fairwave.runs.store import RunStore
    from fairwave.scenario.show import to_toml

    load_plugins(plugins or ())
    store = RunStore(run)
    described = {name: value for name, value in store.about.items() if name not in HIDDEN}
    for name, value in (described | history_in_words(store)).items():
        typer.echo(f"{name}: {value}")
    typer.echo("\n".join((f"progress: {_progress(store)}", *ended_early(store), "")))
    typer.echo(to_toml(store.order.scenario))
    if any(store.summary(track).rounds for track in store.order.tracks()):
        Console(width=None if sys.stdout.isatty() else 120).print(run_table(results(store)))
    store.close()


@app.command()
def rm(
    run: RunFolder,
    yes: Annotated[bool, typer.Option("--yes", show_default=False, help="Do not ask.")] = False,
) -> None:
    """Remove a run: its folder with everything that fairwave put there."""
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
    from fairwave.report.static_figures import FIGURES
    from fairwave.report.table_files import FOLDER as TABLES
    from fairwave.runs.database import FILE, LOCK
    from fairwave.runs.folder import DEVICES, LOG, LOGS, MODELS, SECRET
    from fairwave.runs.salt import FILE as SALT
    from fairwave.runs.seal import FILE as SEAL

    with (folder / FILE).open("rb") as stream:
        if stream.read(15) not in (b"SQLite format 3", b""):
            raise StoreError(f"{folder / FILE}: not a run of fairwave; remove it by hand if you want to")
    figures, tables = folder / FIGURES, folder / TABLES
    ours = [folder / name for name in (FILE, f"{FILE}-journal", SEAL, SALT, PAGE, LOCK)]
    ours += [path for form in ("svg", "pdf", "csv") for path in figures.glob(f"*.{form}")]
    ours += [path for form in ("csv", "tex") for path in tables.glob(f"*.{form}")]
    ours += [folder / LOG, *folder.glob(f"{LOG}.[1-9]"), folder / SECRET, *folder.glob("asked-*.json")]
    for path in ours:
        path.unlink(missing_ok=True)
    for place in (folder / name for name in (DEVICES, MODELS, LOGS)):
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
