"""`fairwave sweep`: the same comparison over many values of some parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.job_runs import Jobs, results_of, run_jobs
from fairwave.errors import ArgumentError

if TYPE_CHECKING:
    from fairwave.studies.sweep import Point
    from fairwave.studies.sweep_file import Sweep


def sweep(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY.toml", show_default=False, help="This TOML file says what to sweep.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Store the runs, the page and the table in this folder. Default: runs/sweep-FILE."),
    ] = None,
    jobs: Jobs = None,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Run on the Dask cluster of this scheduler and not on this machine.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the points, and run nothing.")] = False,
) -> None:
    """Sweep parameters over every combination of a grid, over values drawn at random, or both.

    A study file names a scenario and what varies:

    \b
      scenario = "small"
      seeds = "0..4"
      rounds = 20
      [grid]
      cell.num_devices = [10, 20]
      [random]
      draws = 10
      cell.deadline_s = { law = "log_uniform", low = "0.5 s", high = "2 s" }

    Laws are uniform, log_uniform and choice (values = [32, 64]). All points are checked before the first one is run.
    Every point is a separate run. You may interrupt the sweep at any time. The same command resumes it, and asking for
    more points keeps the finished ones. One page shows all points. The files points.csv and points.parquet have a
    row per point, scheme and seed.

    Examples:

    \b
      fairwave sweep examples/sweep.toml --dry-run
      fairwave sweep examples/sweep.toml --jobs 2 --out runs/first
      fairwave sweep study.toml --scheduler tcp://10.0.0.1:8786 --out /shared/one
    """
    from fairwave.studies.cluster import check_installed
    from fairwave.studies.sweep import points
    from fairwave.studies.sweep_file import load_sweep

    if scheduler and jobs is not None:
        raise ArgumentError("--jobs: a cluster's workers say how many runs they take at a time; leave it out")
    if scheduler:
        check_installed()
    asked = load_sweep(study)
    found = points(asked, study)
    if dry_run:
        _list(found)
        return
    folder = out or Path("runs") / f"sweep-{study.stem}"
    planned = [point.job for point in found]
    run_jobs(planned, folder, jobs, scheduler)
    typer.echo(f"report: {_write(asked, found, folder)}")


def _list(found: Sequence[Point]) -> None:
    from fairwave.report.style import counted

    for point in found:
        typer.echo(point.job.name)
    order = found[0].job.order
    rounds = sum(point.job.order.rounds * len(list(point.job.order.tracks())) for point in found)
    typer.echo(f"{counted(len(found), 'point')}, {rounds} rounds of training ({', '.join(order.schemes)})")


def _write(asked: Sweep, found: Sequence[Point], folder: Path) -> Path:
    from fairwave.report.style import counted
    from fairwave.report.sweep_page import write_sweep
    from fairwave.report.sweep_points import Axis, measured, write_points

    values = {point.job.name: point.values for point in found}
    planned = [point.job for point in found]
    rows = [
        row for job, results in results_of(planned, folder) for row in measured(job.name, values[job.name], results)
    ]
    axes = [Axis(name, asked.laws[name].law if name in asked.laws else "") for name in asked.parameters]
    write_points(rows, folder)
    order = planned[0].order
    about = (
        f"Scenario {', '.join((asked.scenario, *asked.set))}; {counted(len(found), 'point')}, "
        f"{counted(order.rounds, 'round')}, seeds {', '.join(map(str, order.seeds))}. 'fairwave report' shows a "
        "point's run by itself."
    )
    return write_sweep(rows, axes, about, folder)
