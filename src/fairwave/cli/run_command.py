"""`fairwave run` and `fairwave resume`: train schemes, keep every round."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.arguments import DEFAULT_COMPARED, RunFolder, Schemes, Seeds, names_in, warn
from fairwave.cli.dry_run import tell_forecast
from fairwave.cli.progress import watching
from fairwave.cli.scenario_command import Overrides, Plugins, Source
from fairwave.extensions import TRACKERS, listed
from fairwave.runs.seeds import seeds_in

if TYPE_CHECKING:
    from fairwave.runs.order import Order
    from fairwave.trackers.callback_calls import Follow


Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        show_default=False,
        help=f"Also report every round to this tracker. Trackers: {listed(TRACKERS)}, and those of plugins. The "
        "option may be repeated.",
    ),
]


def run(
    source: Source = "paper",
    schemes: Schemes = DEFAULT_COMPARED,
    rounds: Annotated[
        int | None, typer.Option(help="Run this many communication rounds. Default: the scenario's number of rounds.")
    ] = None,
    seeds: Seeds = "",
    overrides: Overrides = None,
    plugins: Plugins = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Store the run in this folder. Default: runs/SCENARIO."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate time, memory and energy, and store nothing.")
    ] = False,
    init_from: Annotated[
        Path | None,
        typer.Option("--init-from", show_default=False, help="Start from the model in this .safetensors or .npz file."),
    ] = None,
    track: Track = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            help="Spread the devices over processes or machines, which connect to process 0 at this HOST:PORT."
        ),
    ] = None,
    processes: Annotated[int | None, typer.Option(help="There are this many processes.", show_default=False)] = None,
    process: Annotated[
        int | None,
        typer.Option(help="This process has this number. Processes are numbered from 0.", show_default=False),
    ] = None,
) -> None:
    """Train schemes side by side on real data and the same channels, and store every round as it ends.

    SOURCE is a preset (see 'fairwave scenario list') or a TOML file. No reported round is lost by Ctrl-C, a crash or a
    full disk. The same command, or 'fairwave resume', continues to the same result, bit for bit if noise is seeded.
    A command with more schemes, seeds or rounds of the same scenario adds to the run.

    Examples:

      fairwave run small

      fairwave run paper-clean --rounds 50 --seeds 0..4 --out runs/clean

      fairwave run paper --schemes proposed,max_power,priced --set cell.num_devices=20 --out runs/twenty

      fairwave run small --track tensorboard

      fairwave run paper --init-from pretrained.safetensors --out runs/tuned

      fairwave run paper --set cell.num_devices=10000 --coordinator gpu0:9000 --processes 2 --process 0
    """
    from fairwave.errors import ArgumentError
    from fairwave.runs.hosts import follow, join
    from fairwave.runs.order import Order, fitting_schemes
    from fairwave.scenario.loading import load_scenario

    scenario = load_scenario(source, overrides or (), plugins=plugins or ())
    order = Order.checked(
        scenario,
        names_in(schemes, fitting_schemes(scenario)),
        seeds_in(seeds) if seeds else (scenario.run.seed,),
        rounds,
        init_from,
    )
    if dry_run:
        tell_forecast(order)
        return
    if coordinator is None and (processes is not None or process is not None):
        raise ArgumentError("--processes and --process: need --coordinator, where process 0 is met")
    if coordinator is not None:
        join(coordinator, processes, process)
        if process:
            follow(order)
            return
    start(order, out or Path("runs") / Path(source).stem, track or ())


def start(order: Order, folder: Path, trackers: Sequence[str] = ()) -> None:
    """Run an order into a folder, with progress and trackers by name, and say how it ended."""
    from fairwave.runs.folder import planned
    from fairwave.runs.session import run as run_into

    if order.scenario.privacy.noise_source == "exact":
        typer.echo(
            "exact noise takes seconds for every local step of a large model; 'hardened' is much faster", err=True
        )
    command, follow = this_command(), _told(trackers, folder)
    whole = planned(order, folder)
    with Resumable(f"fairwave resume {_quoted(folder)}"), watching(whole.rounds * len(list(whole.tracks()))) as watch:
        worked = run_into(order, folder, command, watch, warn=warn, follow=follow)
    tell_results(folder, worked)


def resume(run: RunFolder, track: Track = None) -> None:
    """Resume a run that was interrupted. The result is the same as without the interruption.

    This executes the plugins that the run names, so resume only runs that you trust.

    Example:  fairwave resume runs/paper
    """
    from fairwave.plugins import load_plugins
    from fairwave.runs.session import resume as go_on
    from fairwave.runs.store import RunStore

    store = RunStore(run)
    load_plugins(store.plugin_files())
    order = store.order
    store.close()
    follow = _told(track or (), run)
    with Resumable(f"fairwave resume {_quoted(run)}"), watching(order.rounds * len(list(order.tracks()))) as watch:
        worked = go_on(run, this_command(), watch, follow=follow)
    tell_results(run, worked)


def _told(names: Sequence[str], folder: Path) -> Follow:
    """What tells trackers of training; a failure of theirs is a line on standard error."""
    from fairwave.trackers.callback_calls import CallbackCalls
    from fairwave.trackers.tracker import trackers_for

    chosen = trackers_for(names, folder)
    return lambda training: CallbackCalls(chosen, training, lambda sentence: typer.echo(sentence, err=True))


class Resumable:
    """Says how to go on when a run is interrupted."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is KeyboardInterrupt:
            typer.echo(f"every finished round is safe; resume with: {self._command}", err=True)


def tell_results(folder: Path, worked: bool) -> None:
    """A run's table, what ended early, and where to look next."""
    from rich.console import Console

    from fairwave.plugins import load_plugins
    from fairwave.report.run_table import run_table
    from fairwave.runs.session import ended_early, results
    from fairwave.runs.store import RunStore

    store = RunStore(folder)
    load_plugins(store.plugin_files())  # it has just been run with them
    table, ended = run_table(results(store)), ended_early(store)
    store.close()
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for sentence in ended:
        typer.echo(sentence)
    typer.echo(f"{'done' if worked else 'already done'}: {folder}   (report: fairwave report {_quoted(folder)})")


def this_command() -> str:
    """The command line of this process, as a shell would take it."""
    program = Path(sys.argv[0]).name
    return shlex.join(["fairwave" if program == "__main__.py" else program, *sys.argv[1:]])


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))
