"""The answer to 'do scores know who contributes?': one page with a heat map and a table for every scenario."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairwave.report.agreement_rows import (
    FILE,
    Agreement,
    agreement_sheet,
    best_rule,
    in_order,
    over_seeds,
    write_agreements,
)
from fairwave.report.heat_tables import heat_map_html
from fairwave.report.page import write_study
from fairwave.report.static_figures import FIGURES, write_heat_map
from fairwave.report.tables import Piece, Sheet


def write_contribution(
    rows: Sequence[Agreement], summaries: Mapping[str, str], truth: str, about: str, folder: Path
) -> Path:
    """Write the page, its figures and the rows into a folder; the page's path.

    `summaries` says what each rule looks at; `truth` names the row of the truth on other samples.
    """
    scenarios = in_order(rows, "scenario")
    write_agreements(rows, folder / FILE)
    for scenario in scenarios:
        draw_agreements(rows, scenario, folder / FIGURES)
    listed = Sheet("rules", "What the rules measure", "", ("rule", "what it measures"), list(summaries.items()))
    sections = [piece for scenario in scenarios for piece in _section(rows, scenario)]
    return write_study(
        folder,
        title="fairwave: do scores know who contributes?",
        opening=about,
        pieces=[f"<h2>{html.escape(verdict(rows, truth))}</h2>", *sections, "<h2>Rules</h2>", listed],
        conclusions=_CONCLUSIONS,
    )


def draw_agreements(rows: Sequence[Agreement], scenario: str, folder: Path) -> list[Path]:
    """The heat map of one scenario for print; the files."""
    rules, settings, values, texts = _grid(rows, scenario)
    return write_heat_map(rules, settings, values, texts, f"contribution-{scenario}", folder)


def verdict(rows: Sequence[Agreement], truth: str) -> str:
    """Which rule agrees best with the truth, scenario by scenario."""
    found = [(scenario, *best_rule(rows, scenario, truth)) for scenario in in_order(rows, "scenario")]
    said = [f"'{rule}' in {scenario} ({mean:.2f})" for scenario, rule, mean in found]
    return f"Closest to the Shapley values, by the mean rank correlation over settings: {'; '.join(said)}."


def _section(rows: Sequence[Agreement], scenario: str) -> list[Piece]:
    rules, settings, values, texts = _grid(rows, scenario)
    sheet = agreement_sheet(rows, scenario)
    return [sheet, heat_map_html(rules, settings, values, texts, "rank correlation")]


def _grid(rows: Sequence[Agreement], scenario: str) -> tuple[list[str], list[str], np.ndarray, list[list[str]]]:
    """Rules, settings, mean correlations and the same as texts."""
    own = [row for row in rows if row.scenario == scenario]
    rules, settings = in_order(own, "rule"), in_order(own, "setting")
    values = np.array([[over_seeds(own, setting, rule).mean for setting in settings] for rule in rules])
    sheet = agreement_sheet(rows, scenario)
    return rules, settings, values, [list(row[1:]) for row in sheet.rows]


_CONCLUSIONS = (
    "The truth is a device's Shapley value in the game of a round. A coalition is worth as much as the "
    "mean of its updates lowers the test loss (or raises the accuracy) of the model before the round. The "
    "truth considers one round at a time: an update that pays off only later is worth nothing in it.",
    "Only the rules 'alone' and 'cffl' have samples, and no rule has those of the truth. Agreement with "
    "the truth says nothing about how easily a device can deceive a rule.",
    "The last row is the truth itself on as many other test samples. If that value is low, devices hardly "
    "differ, and no rule could do better.",
    "Devices train under fedavg, so no rule changes what it scores. A scheme that rewards by its scores "
    "would have other updates in later rounds.",
)
