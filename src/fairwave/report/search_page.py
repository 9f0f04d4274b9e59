"""The page of a search: whether any reading fits all that the paper publishes, which is nearest, what matters."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairwave.metrics.paper_distance import PUBLISHED, Member
from fairwave.metrics.published import STATEMENTS
from fairwave.report.figure_data import Panel, Series
from fairwave.report.interactive_figures import panel_html
from fairwave.report.page import FIGURES, FILE, write_page
from fairwave.report.search_file import FILE as ALL
from fairwave.report.search_words import (
    DEFINITION,
    TRAINING,
    UNKNOWNS,
    answer,
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
from fairwave.report.static_figures import write_figures
from fairwave.report.tables import table


def write_search_page(ranking: Sequence[Member], about: str, folder: Path) -> Path:
    """Write the page and its figures into a folder; the page's path."""
    best = best_member(ranking)
    panels = [_distances(ranking, unknown) for unknown in TRAINING]
    write_figures(panels, folder / FIGURES)
    drawn = "".join(f"<div><h3>{panel.title}</h3>{panel_html(panel, 'search-')}</div>" for panel in panels)
    sections = (
        f"<h2>Answer</h2><p><strong>{html.escape(answer(ranking, len(ranking)))}</strong></p>",
        f"<h3>How distance is defined</h3><p>{html.escape(DEFINITION)}</p>",
        "<h2>The best member beside the paper</h2>",
        _beside_the_paper(best),
        "<h3>What the paper says of its curves in words</h3>",
        _statements(best),
        "<h2>What matters</h2>",
        _caption("The least distance that can be reached with each value of each unknown, whatever the others are."),
        _what_matters(ranking),
        _caption(f"Below, the distances of all members with each value, the nearest first. {ALL} has all of them."),
        f'<div class="figures">{drawn}</div>',
        "<h2>Every training, with the averages that suit it best</h2>",
        _every_training(ranking),
    )
    return write_page(
        folder / FILE,
        title="fairwave: which benchmark did the paper use?",
        opening=about,
        sections="".join(sections),
        conclusions=_CONCLUSIONS,
    )


def _distances(ranking: Sequence[Member], unknown: str) -> Panel:
    """The distances of the members with each value of an unknown, sorted."""
    series = []
    for value in best_with(ranking, unknown):
        each = np.array([member.distance for member in ranking if member.readings[unknown] == value])
        series.append(Series(value, np.arange(1, each.size + 1), each))
    title = f"Distances by {UNKNOWNS[unknown].title}"
    return Panel(f"distances-{unknown}", title, "members, the nearest first", "distance", "", series)


def _beside_the_paper(member: Member) -> str:
    rows = [
        (
            published_in_words(name),
            paper_in_words(name),
            ours_in_words(name, member),
            f"{size:.2f}",
            "no" if name in member.misses else "yes",
        )
        for name, size in member.terms.items()
    ]
    return table(("published", "paper", "ours", "term", "agrees"), rows)


def _statements(member: Member) -> str:
    texts = {statement.name: statement.text for statement in STATEMENTS}
    rows = [(texts.get(name, name), "yes" if holds else "no") for name, holds in member.statements.items()]
    return table(("statement", "holds"), rows)


def _what_matters(ranking: Sequence[Member]) -> str:
    rows = [
        (UNKNOWNS[unknown].title, value_in_words(unknown, value), f"{best.distance:.2f}", misses_in_words(best))
        for unknown in UNKNOWNS
        for value, best in best_with(ranking, unknown).items()
    ]
    return table(("unknown", "read as", "least distance", "which misses (term)"), rows)


def _every_training(ranking: Sequence[Member]) -> str:
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
    return table(("distance", "training", "averages", "misses (term)", "statements that hold"), rows)


def _caption(text: str) -> str:
    return f'<p class="caption">{html.escape(text)}</p>'


_CONCLUSIONS = (
    f"A member that fits is consistent with the {len(PUBLISHED)} things that the paper publishes; it need not be what "
    "the paper did. One that does not fit is not what the paper did, if all else is read as the paper meant it.",
    "The family is finite: it has the readings that are listed, and all else as in the scenario. A reading that nobody "
    "thought of is not in it.",
    "The price of 'priced' was chosen to give the paper's mean energy cut: that this term is small there is no "
    "evidence.",
    "The more ways to average are tried, the more easily some of them agrees by luck. The distances of different "
    "trainings may be compared, since each has the same number of ways.",
    "With one seed, terms also hold that seed's luck with deep fades and initial weights; --seeds 0..4 shows how much.",
)
