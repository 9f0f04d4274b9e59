"""The point with the least sum of distances to all updates (Pillutla, Kakade, Harchaoui, "RFA", IEEE TSP 2022)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.aggregators.aggregator import Aggregator, OwnShare, weighted_mean
from fairwave.aggregators.order_statistics import median
from fairwave.policy.rows import lengths
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, Flag, FlagPerDevice, Params, UpdatePerDevice

ITERATIONS = 32
"""Most steps of Weiszfeld's algorithm; each is a weighted mean."""
STILL = 1e-6
"""The last step is one that moves the point by at most so much, over the median distance."""
SMALLEST = 1e-6
"""Distance below which an update counts as met, over the median distance: its weight would be infinite."""

TINY = float(np.finfo(np.float32).tiny)


class _Search(NamedTuple):
    """How far the search is."""

    steps: Count
    point: Params
    moving: Flag


def _geometric_median(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """Smoothed Weiszfeld: again and again the mean of the updates, each weighted by one over its distance."""

    def nearer(now: _Search) -> _Search:
        apart = lengths(rows - now.point[None, :])
        typical = median(apart[:, None], arrived)[0]
        smallest = jnp.maximum(SMALLEST * typical, TINY)
        point = weighted_mean(rows, jnp.where(arrived, smallest / jnp.maximum(apart, smallest), 0.0))
        return _Search(now.steps + 1, point, lengths((point - now.point)[None, :])[0] > STILL * typical)

    start = median(rows, arrived)  # one attacker can make the mean infinite
    first = _Search(jnp.asarray(0), start, jnp.asarray(True))
    return jax.lax.while_loop(lambda now: now.moving & (now.steps < ITERATIONS), nearer, first).point


geometric_median = Aggregator(
    name="geometric_median",
    summary="The step is the point with the least sum of distances to all updates (RFA, Pillutla et al., 2022).",
    step=_geometric_median,
)
