"""Running the jobs of a study, with progress; here or on a cluster."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.progress import watching
from fairwave.cli.run_command import this_command

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.runs.session import TrackProgress
    from fairwave.studies.jobs import Job

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", help="Make this many runs at a time. Default: one per core, or one on a GPU."),
]


def run_jobs(planned: Sequence[Job], folder: Path, workers: int | None, scheduler: str = "") -> None:
    """All runs of a study; those that are done are not repeated."""
    from fairwave.runs.folder import planned as with_what_is_there
    from fairwave.runs.order import Track
    from fairwave.studies.cluster import run_on_cluster
    from fairwave.studies.jobs import run_all

    command = this_command()
    # What is there is looked at before anything is begun: a folder of another scenario is refused now, not hours later.
    whole = [with_what_is_there(job.order, folder / job.name) for job in planned]
    try:
        with watching(sum(order.rounds * len(list(order.tracks())) for order in whole)) as watch:

            def named(name: str, step: TrackProgress) -> None:
                watch(dataclasses.replace(step, track=Track(f"{name}: {step.track.scheme}", step.track.seed)))

            if scheduler:
                run_on_cluster(planned, folder, command, scheduler, named, functools.partial(typer.echo, err=True))
            else:
                run_all(planned, folder, command, _workers() if workers is None else workers, named)
    except KeyboardInterrupt:
        begun = "; workers end the runs that they have begun" if scheduler else ""
        typer.echo(f"every stored round is safe{begun}; the same command resumes", err=True)
        raise


def results_of(planned: Sequence[Job], folder: Path) -> Iterator[tuple[Job, xr.Dataset]]:
    """Every job with its results: what it asked for, though the folder may hold more."""
    from fairwave.runs.session import results
    from fairwave.runs.store import RunStore

    for job in planned:
        store = RunStore(folder / job.name)
        found = results(store)
        store.close()
        order = job.order
        yield job, found.sel(scheme=list(order.schemes), seed=list(order.seeds)).isel(round=slice(order.rounds))


def _workers() -> int:
    import jax

    return (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 1
