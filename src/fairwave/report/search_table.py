"""A search in a terminal: the best member of each training, and what it misses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwave.metrics.paper_distance import Member
from fairwave.report.search_words import AVERAGING, TRAINING, best_of_each_training, misses_in_words

if TYPE_CHECKING:
    from rich.table import Table

MOST_ROWS = 10


def search_table(ranking: Sequence[Member]) -> Table:
    """Readings by their short names, as in the file."""
    from rich.table import Table

    table = Table(title="best members, each with the averages that suit its training best", title_justify="left")
    for column in ("distance", "training", "averages", "misses (term)", "statements"):
        table.add_column(column, justify="right" if column == "distance" else "left")
    for member in best_of_each_training(ranking)[:MOST_ROWS]:
        table.add_row(
            f"{member.distance:.2f}",
            ", ".join(_short(member, name) for name in TRAINING),
            ", ".join(_short(member, name) for name in AVERAGING),
            misses_in_words(member),
            f"{sum(member.statements.values())} of {len(member.statements)}",
        )
    return table


def _short(member: Member, name: str) -> str:
    value = member.readings[name]
    return value if name in ("benchmark", "noise") else f"{name} {value}"
