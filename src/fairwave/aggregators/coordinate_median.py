"""The median of every value (Yin, Chen, Ramchandran, Bartlett, ICML 2018)."""

from __future__ import annotations

from fairwave.aggregators.aggregator import Aggregator
from fairwave.aggregators.order_statistics import median

coordinate_median = Aggregator(
    name="coordinate_median",
    summary="The step is the median of every value (Yin et al., ICML 2018).",
    step=lambda settings, rows, arrived, own: median(rows, arrived),
)
