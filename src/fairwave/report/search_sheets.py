"""The tables of a search, for its page and for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from fairwave.metrics.paper_distance import Member
from fairwave.report.search_words import (
    UNKNOWNS,
    averaging_in_words,
    best_member,
    best_of_each_training,
    best_with,
    misses_in_words,
    ours_in_words,
    paper_in_words,
    published_in_words,
    training_in_words,
    value_in_words,
)
from fairwave.report.tables import Sheet


def search_sheets(ranking: Sequence[Member]) -> dict[str, Sheet]:
    """All of them, by their keys."""
    return {sheet.key: sheet for sheet in (_terms(ranking), _unknowns(ranking), _trainings(ranking))}


def _terms(ranking: Sequence[Member]) -> Sheet:
    best = best_member(ranking)
    rows = [
        (
            published_in_words(name),
            paper_in_words(name),
            ours_in_words(name, best),
            f"{size:.2f}",
            "no" if name in best.misses else "yes",
        )
        for name, size in best.terms.items()
    ]
    caption = "The nearest member that fits or, if none does, the nearest of all."
    heads = ("published", "paper", "best member", "term", "agrees")
    return Sheet("terms", "The best member beside the paper", caption, heads, rows)


def _unknowns(ranking: Sequence[Member]) -> Sheet:
    rows = [
        (UNKNOWNS[unknown].title, value_in_words(unknown, value), f"{best.distance:.2f}", misses_in_words(best))
        for unknown in UNKNOWNS
        for value, best in best_with(ranking, unknown).items()
    ]
    caption = "The least distance that can be reached with each value of each unknown, whatever the others are."
    return Sheet("unknowns", "What matters", caption, ("unknown", "read as", "least distance", "misses (term)"), rows)


def _trainings(ranking: Sequence[Member]) -> Sheet:
    rows = [
        (
            f"{member.distance:.2f}",
            training_in_words(member),
            averaging_in_words(member),
            misses_in_words(member),
            f"{sum(member.statements.values())} of {len(member.statements)}",
        )
        for member in best_of_each_training(ranking)
    ]
    heads = ("distance", "training", "averages", "misses (term)", "statements that hold")
    title = "Every training, with the averages that suit it best"
    return Sheet("trainings", title, "The nearest first.", heads, rows)
