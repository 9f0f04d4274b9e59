"""The answer to 'what is the best that a strategic device can do?': a verdict, and every strategy that was tried."""

from __future__ import annotations

import csv
import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairwave.metrics.intervals import interval
from fairwave.metrics.price_of_honesty import HARDLY_WORSE, Answer, Outcome
from fairwave.report.page import write_study
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

CSV = "strategies.csv"
_HEADS = ("strategy", "gain in utility (%)", "its copy's loss (%)", "energy saved (%)")


def verdict(answer: Answer) -> str:
    """The price of honesty, what can be saved for nothing, and what no strategy can exceed."""
    best, saving = answer.best_utility, answer.best_saving
    saved = saving.cheap_gain
    price = with_interval(answer.price_of_honesty, 1)
    cheap = (
        f"the most energy saved with a copy at most {HARDLY_WORSE:.0%} worse is {100.0 * saved:.1f} % "
        f"({saving.strategy})"
        if saved > 0.0
        else f"no strategy that was found saves energy with a copy at most {HARDLY_WORSE:.0%} worse on fresh seeds"
    )
    found = f"The best strategy found ({best.strategy}) gains {price} % of utility on fresh seeds; {cheap}."
    return f"{found} No strategy, known or not, can gain more than {with_interval(answer.bound, 1)} % of utility there."


def write_best_response(answer: Answer, about: str, folder: Path) -> Path:
    """Write the page, and every strategy as a row of a CSV file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CSV).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("strategy", "utility_gain", "loss_change", "energy_saved"))
        writer.writerows((one.strategy, *map(float, _means(one))) for one in answer.tried)
    caption, best = (
        "Values compare a strategy with the honest device on the same seeds.",
        (answer.best_utility, answer.best_saving),
    )
    pieces = (
        f"<h2>Verdict</h2><p><strong>{html.escape(verdict(answer))}</strong></p>",
        Sheet(
            "best", "The best two on seeds that the search has not seen", caption, _HEADS, [_row(one) for one in best]
        ),
        Sheet(
            "tried",
            "All strategies, on the seeds of the search",
            caption,
            _HEADS,
            [_row(one) for one in answer.tried],
        ),
    )
    return write_study(folder, title="fairwave: best responses", opening=about, pieces=pieces, conclusions=_CONCLUSIONS)


def _means(one: Outcome) -> Sequence[float]:
    return [float(np.mean(values)) for values in (one.utility_gain, one.loss_change, one.energy_saved)]


def _row(one: Outcome) -> list[str]:
    values = (one.utility_gain, one.loss_change, one.energy_saved)
    return [one.strategy, *(with_interval(interval(100.0 * each), 1) for each in values)]


_CONCLUSIONS = (
    "One device in the middle of the cell plays each strategy, and all others are honest. It is compared with itself "
    "in the same run without a strategy.",
    "Utility is the paper's. It uses the deviation that the device received, and not the one that it expected.",
    "A search finds a lower bound: a better strategy may exist outside the space that was searched. The "
    "bound for all strategies follows from the form of the utility: a deviation is never negative, and no "
    "energy is worth more than half of utility.energy_reference_j.",
)
