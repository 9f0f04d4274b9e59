"""`fairwave reproduce`: the paper's whole study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.arguments import Seeds
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
    rounds: Annotated[int | None, typer.Option(help="Communication rounds. Default: the paper's 200.")] = None,
    seeds: Seeds = "0..4",
    out: Annotated[
        Path, typer.Option(show_default=False, help="Folder for all runs and the report. Default: runs/reproduce.")
    ] = Path("runs/reproduce"),
) -> None:
    """Run the paper's study: both presets, all benchmarks, other readings, 200 rounds, 5 seeds; then report.

    Other readings are two more effort fits, and one noisy copy for all devices of a benchmark. This takes hours on a
    laptop and minutes on a GPU. Interrupt it at will: the same command goes on.

    Example:  fairwave reproduce --seeds 0..1 --rounds 50
    """
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
        start(Order.checked(scenario, schemes, seeds_in(seeds), rounds), out / name)
    write([(name, out / name) for name, *_ in studies], out)
