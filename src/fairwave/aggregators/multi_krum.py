"""Multi-Krum: the mean of the updates with the best scores of Krum, as many as there are honest devices."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers, weighted_mean
from fairwave.aggregators.krum import krum_scores, neighbours_of
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, UpdatePerDevice


def _best(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    attackers = num_attackers(settings, arrived)
    scores = krum_scores(neighbours_of(rows, arrived), arrived, attackers)
    rank = jnp.argsort(jnp.argsort(scores))
    return weighted_mean(rows, arrived & (rank < jnp.sum(arrived) - attackers))


multi_krum = Aggregator(
    name="multi_krum",
    summary="The step is the mean of the updates with Krum's best scores, without as many as may be attackers'.",
    step=_best,
)
