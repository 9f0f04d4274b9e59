"""The mean of every value without its largest and smallest ones (Yin, Chen, Ramchandran, Bartlett, ICML 2018)."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers
from fairwave.aggregators.order_statistics import mean_between
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, UpdatePerDevice


def _trimmed(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """As many of the largest and of the smallest values are left out as there may be attackers; one or two are kept."""
    count = jnp.sum(arrived)
    left_out = jnp.minimum(num_attackers(settings, arrived), jnp.maximum(count - 1, 0) // 2)
    return mean_between(rows, arrived, left_out)


trimmed_mean = Aggregator(
    name="trimmed_mean",
    summary="The step is the mean of every value without its largest and smallest ones (Yin et al., ICML 2018).",
    step=_trimmed,
)
