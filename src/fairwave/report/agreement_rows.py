"""How well rules know who contributes, as rows of a CSV file and as tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairwave.errors import ArgumentError, OutputError
from fairwave.metrics.intervals import Interval, interval
from fairwave.report.fitting_table import FittingTable
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

FILE = "contribution.csv"
NO_ORDER = "no order"
"""What is told of a rule that scores all devices alike, in every seed."""


class Agreement(NamedTuple):
    """One rule in one run."""

    scenario: str
    setting: str
    rule: str
    seed: int
    correlation: float
    """Rank correlation of its scores with the Shapley values; NaN if it scores all devices alike."""


def write_agreements(rows: Sequence[Agreement], path: Path) -> None:
    """All rows as CSV."""
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(Agreement._fields)
            writer.writerows(row._replace(correlation=round(row.correlation, 6)) for row in rows)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder") from None


def read_agreements(path: Path) -> list[Agreement]:
    """The rows of such a file."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return [
                Agreement(row["scenario"], row["setting"], row["rule"], int(row["seed"]), float(row["correlation"]))
                for row in csv.DictReader(stream)
            ]
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be read ({error.strerror}); 'fairwave study contribution' writes it"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{path}: is no file of that study ({error}); 'fairwave study contribution' writes one"
        ) from None


def over_seeds(rows: Sequence[Agreement], setting: str, rule: str) -> Interval:
    """The mean of a rule's correlations in a setting; seeds in which it has no order are left out."""
    return interval([row.correlation for row in rows if (row.setting, row.rule) == (setting, rule)])


def agreement_sheet(rows: Sequence[Agreement], scenario: str) -> Sheet:
    """Rules by settings, for one scenario."""
    own = [row for row in rows if row.scenario == scenario]
    settings, rules = in_order(own, "setting"), in_order(own, "rule")
    seeds = len({row.seed for row in own})
    cells = [[rule, *(in_words(over_seeds(own, setting, rule), seeds) for setting in settings)] for rule in rules]
    spread = f", with 95 % intervals over {seeds} seeds" if seeds > 1 else ", of one seed"
    return Sheet(
        f"contribution-{scenario}",
        f"Scenario {scenario}",
        f"Rank correlation of each rule's summed scores with the summed Shapley values{spread}.",
        ["rule", *settings],
        cells,
    )


def agreement_table(sheet: Sheet) -> FittingTable:
    """A sheet for a terminal."""
    return FittingTable(
        f"{sheet.title}. {sheet.caption}", [head.replace("_", "\n") for head in sheet.heads], sheet.rows
    )


def best_rule(rows: Sequence[Agreement], scenario: str, truth: str) -> tuple[str, float]:
    """The rule with the largest mean over settings, `truth` left out, and that mean; no order counts as 0."""
    own = [row for row in rows if row.scenario == scenario]
    settings = in_order(own, "setting")

    def mean(rule: str) -> float:
        return float(np.mean(np.nan_to_num([over_seeds(own, setting, rule).mean for setting in settings])))

    best = max((rule for rule in in_order(own, "rule") if rule != truth), key=mean)
    return best, mean(best)


def in_order(rows: Sequence[Agreement], field: str) -> list[str]:
    """The names that a field takes, in the order of the rows."""
    return list(dict.fromkeys(str(getattr(row, field)) for row in rows))


def in_words(value: Interval, seeds: int) -> str:
    """A correlation and its interval, and of how many seeds, where a rule has no order in some."""
    if np.isnan(value.mean):
        return NO_ORDER
    return with_interval(value, 2) + (f" ({value.count} of {seeds} seeds)" if value.count < seeds else "")
