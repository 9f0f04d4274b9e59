"""How far each scheme learned: losses at the paper's rounds and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.metrics.intervals import Interval
from fairwave.report.statistics import (
    at_round,
    evaluated,
    labelled,
    loss_spread,
    mean_loss,
    milestones,
    tested_measure,
)
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

if TYPE_CHECKING:
    import xarray as xr


def learning_sheet(results: xr.Dataset) -> Sheet:
    """Mean device loss round by round, then the spread across devices and how good the true model is at the end."""
    loss, spread, rounds = mean_loss(results), loss_spread(results), milestones(results)
    measure, in_words = tested_measure(results)
    heads = [
        "scheme",
        *(f"loss, round {number}" for number in rounds),
        "std across devices, last",
        f"{in_words}, last",
    ]
    rows = []
    for name in map(str, results["scheme"].values):
        last = rounds[-1]
        values: list[Interval] = [at_round(loss, name, number) for number in rounds]
        values += [at_round(spread, name, last), at_round(evaluated(results, measure), name, last)]
        rows.append((labelled(results, name), *map(with_interval, values)))
    caption = f"Mean over devices of the loss on their own data after local training; {in_words} of the true model."
    return Sheet("learning", "Learning", caption, heads, rows)
