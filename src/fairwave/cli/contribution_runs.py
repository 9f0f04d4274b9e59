"""The runs of `fairwave study contribution`, one after the other, and what is told of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from fairwave.errors import ArgumentError
from fairwave.report.style import counted


def contribution(
    sources: Sequence[str],
    overrides: Sequence[str],
    seeds: Sequence[int],
    out: Path | None,
    *,
    rounds: int,
    every: int,
    samples: int,
    utility: str,
    truncations: tuple[float, float],
) -> None:
    """Play the games of every scenario, and write table, file, figures and page.

    `truncations` are those between and within rounds, where values are estimated.
    """
    from rich.console import Console

    from fairwave.report.agreement_rows import FILE, Agreement, agreement_sheet, agreement_table
    from fairwave.report.contribution_page import verdict, write_contribution
    from fairwave.scenario.loading import load_scenario
    from fairwave.studies.contribution_scores import SCORE_RULES
    from fairwave.studies.contribution_study import Games, played
    from fairwave.studies.played_games import AGAIN

    if utility not in ("loss", "accuracy"):
        raise ArgumentError(f"--utility {utility}: unknown; choose 'loss' or 'accuracy'")
    names = {Path(source).stem: source for source in sources}
    if not names or len(names) < len(sources):
        raise ArgumentError(f"--scenarios {','.join(sources)}: give one or more, and no name twice")
    games = Games(rounds, every, samples, "accuracy" if utility == "accuracy" else "loss", *truncations)
    folder = out or Path("runs/study-contribution")
    rows = []
    for name, source in names.items():
        for setting, seed, found in played(name, load_scenario(source, overrides), seeds, games, folder):
            typer.echo(f"{name}, {setting}, seed {seed}: done", err=True)
            rows += [Agreement(name, setting, rule, seed, value) for rule, value in found.agreement().items()]
    summaries = {rule.name: rule.summary for rule in SCORE_RULES} | {
        AGAIN: "This is the truth itself, on other test samples."
    }
    about = (
        f"The study ran {counted(rounds, 'round')} of fedavg, with a game every {every} rounds, starting with "
        f"the first. Worth is the change of the test {utility} on {samples} samples. Seeds "
        f"{', '.join(map(str, seeds))}, {counted(len(rows) // len(summaries), 'run')}."
    )
    page = write_contribution(rows, summaries, AGAIN, about, folder)
    console = Console(width=None if sys.stdout.isatty() else 160)
    for name in names:
        console.print(agreement_table(agreement_sheet(rows, name)))
    typer.echo(verdict(rows, AGAIN))
    typer.echo(f"report: {page}   (all rows: {folder / FILE})")
