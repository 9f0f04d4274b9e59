"""The mean of the updates, as in the paper: one attacker can move it anywhere."""

from __future__ import annotations

from fairwave.aggregators.aggregator import Aggregator
from fairwave.learning.aggregate import mean_of

mean = Aggregator(
    name="mean",
    summary="The step is the mean of the updates, as in the paper.",
    step=lambda settings, rows, arrived, own: mean_of(rows, arrived),
)
