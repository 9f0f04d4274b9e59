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
from fairwave.report.page import write_study
from fairwave.report.search_file import FILE as ALL
from fairwave.report.search_sheets import search_sheets
from fairwave.report.search_words import DEFINITION, TRAINING, UNKNOWNS, answer, best_member, best_with
from fairwave.report.tables import Sheet


def write_search_page(ranking: Sequence[Member], about: str, folder: Path) -> Path:
    """Write the page and its figures into a folder; the page's path."""
    sheets = search_sheets(ranking)
    panels = [_distances(ranking, unknown) for unknown in TRAINING]
    drawn = "".join(f"<div><h3>{panel.title}</h3>{panel_html(panel, 'search-')}</div>" for panel in panels)
    pieces = (
        f"<h2>Answer</h2><p><strong>{html.escape(answer(ranking, len(ranking)))}</strong></p>",
        f"<h3>How distance is defined</h3><p>{html.escape(DEFINITION)}</p>",
        sheets["terms"],
        _statements(best_member(ranking)),
        sheets["unknowns"],
        _caption(f"Below, the distances of all members with each value, the nearest first. {ALL} has all of them."),
        f'<div class="figures">{drawn}</div>',
        sheets["trainings"],
    )
    return write_study(
        folder,
        title="fairwave: which benchmark did the paper use?",
        opening=about,
        pieces=pieces,
        panels=panels,
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


def _statements(member: Member) -> Sheet:
    texts = {statement.name: statement.text for statement in STATEMENTS}
    rows = [(texts.get(name, name), "yes" if holds else "no") for name, holds in member.statements.items()]
    title, caption = "What the paper says of its curves in words", "In the member that is nearest to the paper."
    return Sheet("statements", title, caption, ("statement", "holds"), rows)


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
