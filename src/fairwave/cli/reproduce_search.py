"""The search of `fairwave reproduce`: all readings of what the paper leaves open, ranked by what it publishes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairwave.cli.job_runs import results_of, run_jobs

if TYPE_CHECKING:
    from fairwave.studies.jobs import Job


def search(
    overrides: Sequence[str], seeds: tuple[int, ...], rounds: int | None, workers: int | None, folder: Path
) -> None:
    """Train the whole family, rank its members, and write table, file and page."""
    from rich.console import Console

    from fairwave.report.search_file import FILE, write_search
    from fairwave.report.search_page import write_search_page
    from fairwave.report.search_table import search_table
    from fairwave.report.search_words import answer
    from fairwave.studies.benchmark_search import jobs
    from fairwave.studies.search_members import members, ranked

    planned = jobs(overrides, seeds, rounds)
    run_jobs(planned, folder, workers)
    found = {job.name: results for job, results in results_of(planned, folder)}
    ranking = ranked(members(found, planned[0].order.rounds))
    write_search(ranking, folder / FILE)
    page = write_search_page(ranking, _about(planned, overrides), folder)
    Console(width=None if sys.stdout.isatty() else 160).print(search_table(ranking))
    typer.echo(answer(ranking, len(ranking)))
    typer.echo(f"report: {page}   (all members: {folder / FILE})")


def _about(planned: Sequence[Job], overrides: Sequence[str]) -> str:
    from fairwave.report.style import counted

    order = planned[0].order
    tracks = sum(len(list(job.order.tracks())) for job in planned)
    changed = f" with {', '.join(overrides)}" if overrides else ""
    return (
        f"Scenarios paper and paper-clean{changed}; {counted(order.rounds, 'round')}, seeds "
        f"{', '.join(map(str, order.seeds))}; {counted(len(planned), 'run')} with {counted(tracks, 'track')}, which "
        "'fairwave report' shows one by one."
    )
