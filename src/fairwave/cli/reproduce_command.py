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
        int | None, typer.Option(help="Run so many communication rounds. Left out, they are the paper's 200.")
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="Repeat with these seeds, as in 0..4 or 0,3,7. Left out, they are 0..4, or 0 with --search.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Put all into this folder. Left out, it is runs/reproduce, or runs/search with --search."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search for the readings that meet all that the paper publishes.")
    ] = False,
    overrides: Overrides = None,
    jobs: Jobs = None,
) -> None:
    """Run the paper's study: both presets, all benchmarks, other readings, 200 rounds, 5 seeds; then report.

    Other readings are two more effort fits, and one noisy copy for all devices of a benchmark. This takes hours on a
    laptop and minutes on a GPU. Interrupt it at will: the same command goes on.

    With --search, train every reading of what the paper leaves open (the benchmark's power, the noise, the effort fit),
    average in every way that it may have, and rank all by their distance to its stated numbers and axes together: two
    hours on two cores. The table tells the best, search.csv all, the page what matters. --set and --jobs are for this.

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
