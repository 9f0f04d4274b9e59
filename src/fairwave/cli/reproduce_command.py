"""`fairwave reproduce`: the paper's whole study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.job_runs import Jobs
from fairwave.cli.scenario_command import Overrides
from fairwave.errors import ArgumentError
from fairwave.runs.seeds import seeds_in

PRESETS = ("paper", "paper-clean")
BENCHMARKS = ("proposed", "max_power", "amplifier_cap", "priced", "equal_energy", "least_energy")
OTHER_READINGS = {
    "prior": "utility.effort_fit=prior",
    "window": "utility.effort_fit=window",
    "broadcast": "privacy.broadcast=true",
}
"""Where the paper can be read in another way: what a run's name ends with, and the setting."""


def reproduce(
    rounds: Annotated[
        int | None, typer.Option(help="Run this many communication rounds. Default: 200, as in the paper.")
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="Repeat with these seeds, as in 0..4 or 0,3,7. Default: 0..4, or 0 with --search.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Store everything in this folder. Default: runs/reproduce, or runs/search with --search."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search for the readings of the paper that match all that it publishes.")
    ] = False,
    overrides: Overrides = None,
    jobs: Jobs = None,
) -> None:
    """Run the paper's study with both presets, all benchmarks and other readings, and write its report.

    The study has 200 rounds and 5 seeds. Other readings are two more effort fits (a device's ways to estimate how its
    work changes its score), and one noisy copy for all devices of a benchmark. The study takes hours on a laptop and
    minutes on a GPU. You may interrupt it at any time. The same command resumes it.

    With --search, the command trains every reading of what the paper leaves open: the benchmark's power, the noise and
    the effort fit. It averages in every way that the paper may have used, and ranks all readings by their distance to
    the paper's stated numbers and axes together. This takes two hours on two cores. The table shows the best readings,
    search.csv has all of them, and the page explains the result. The options --set and --jobs need --search.

    Examples:

    \b
      fairwave reproduce --seeds 0..1 --rounds 50
      fairwave reproduce --search --jobs 2
    """
    if search:
        from fairwave.cli.reproduce_search import search as search_readings

        search_readings(overrides or (), seeds_in(seeds or "0"), rounds, jobs, out or Path("runs/search"))
        return
    for option, given in (("--set", overrides), ("--jobs", jobs)):
        if given is not None:
            raise ArgumentError(f"{option}: the study has its own; leave it out, or ask for --search")
    _study(rounds, seeds_in(seeds or "0..4"), out or Path("runs/reproduce"))


def _study(rounds: int | None, seeds: tuple[int, ...], out: Path) -> None:
    """Run and report it."""
    from fairwave.cli.report_command import write
    from fairwave.cli.run_command import start
    from fairwave.runs.order import Order
    from fairwave.scenario.loading import load_scenario

    studies: list[tuple[str, str, list[str], tuple[str, ...]]] = [
        (preset, preset, [], BENCHMARKS) for preset in PRESETS
    ]
    studies += [
        (f"{preset}-{name}", preset, [setting], BENCHMARKS[:2])
        for preset in PRESETS
        for name, setting in OTHER_READINGS.items()
    ]
    for name, preset, overrides, schemes in studies:
        scenario = load_scenario(preset, overrides)
        typer.echo(f"{name}: {', '.join(schemes)}", err=True)
        start(Order.checked(scenario, schemes, seeds, rounds), out / name)
    write([(name, out / name) for name, *_ in studies], out)
