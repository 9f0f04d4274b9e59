"""Bulyan: Krum chooses updates one by one, and a trimmed mean of every value follows (El Mhamdi et al., ICML 2018)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers
from fairwave.aggregators.krum import krum_scores, neighbours_of
from fairwave.aggregators.order_statistics import mean_of_smallest, median
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Params, UpdatePerDevice


def _bulyan(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """The mean, for every value, of those that are nearest to the median of the chosen updates.

    With n updates and f attackers, n - 2 f updates are chosen and n - 4 f values of them are used, at least one. The
    proof of its authors asks for n of at least 4 f + 3.
    """
    count, attackers = jnp.sum(arrived), num_attackers(settings, arrived)
    chosen = _chosen(rows, arrived, attackers, jnp.maximum(count - 2 * attackers, 1))
    middle = median(rows, chosen)
    used = jnp.minimum(jnp.maximum(count - 4 * attackers, 1), jnp.sum(chosen))
    return jnp.where(count > 0, mean_of_smallest(rows, chosen, jnp.abs(rows - middle[None, :]), used), 0.0)


def _chosen(rows: UpdatePerDevice, arrived: FlagPerDevice, attackers: Count, wanted: Count) -> FlagPerDevice:
    """The update that Krum chooses, then the one that it chooses among the others, and so on."""
    near = neighbours_of(rows, arrived)

    def choose(taken: Count, left: FlagPerDevice) -> FlagPerDevice:
        best = jnp.argmin(krum_scores(near, left, attackers))
        return left.at[best].set(left[best] & (taken >= wanted))

    left: FlagPerDevice = jax.lax.fori_loop(0, rows.shape[0], choose, arrived)
    return arrived & ~left


bulyan = Aggregator(
    name="bulyan",
    summary="Krum chooses updates one by one, and the values nearest to their median are averaged (El Mhamdi et "
    "al., ICML 2018).",
    step=_bulyan,
)
