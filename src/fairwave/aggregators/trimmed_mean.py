"""The mean of every value without its largest and smallest ones (Yin, Chen, Ramchandran, Bartlett, ICML 2018)."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, ascending, num_attackers
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, UpdatePerDevice


def _trimmed(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """As many of the largest and of the smallest values are left out as there may be attackers; one or two are kept."""
    count = jnp.sum(arrived)
    left_out = jnp.minimum(num_attackers(settings, arrived), jnp.maximum(count - 1, 0) // 2)
    place = jnp.arange(rows.shape[0])
    kept = (place >= left_out) & (place < count - left_out)
    total = jnp.sum(jnp.where(kept[:, None], ascending(rows, arrived), 0.0), axis=0)
    return total / jnp.maximum(jnp.sum(kept), 1)


trimmed_mean = Aggregator(
    name="trimmed_mean",
    summary="the mean of every value without its largest and smallest ones (Yin et al., ICML 2018)",
    step=_trimmed,
)
