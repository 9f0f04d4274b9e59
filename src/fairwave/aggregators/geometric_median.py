"""The point with the least sum of distances to all updates (Pillutla, Kakade, Harchaoui, "RFA", IEEE TSP 2022)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.aggregators.aggregator import Aggregator, OwnShare, weighted_mean
from fairwave.aggregators.order_statistics import median
from fairwave.policy.rows import lengths
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Params, UpdatePerDevice

ITERATIONS = 32
"""Steps of Weiszfeld's algorithm; each is a weighted mean."""
SMALLEST = 1e-6
"""Distance below which an update counts as met, over the median distance: its weight would be infinite."""

TINY = float(np.finfo(np.float32).tiny)


def _geometric_median(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """Smoothed Weiszfeld: again and again the mean of the updates, each weighted by one over its distance."""

    def nearer(_: Count, point: Params) -> Params:
        apart = lengths(rows - point[None, :])
        smallest = jnp.maximum(SMALLEST * median(apart[:, None], arrived)[0], TINY)
        return weighted_mean(rows, jnp.where(arrived, smallest / jnp.maximum(apart, smallest), 0.0))

    start = median(rows, arrived)  # one attacker can make the mean infinite
    found: Params = jax.lax.fori_loop(0, ITERATIONS, nearer, start)
    return found


geometric_median = Aggregator(
    name="geometric_median",
    summary="The step is the point with the least sum of distances to all updates (RFA, Pillutla et al., 2022).",
    step=_geometric_median,
)
