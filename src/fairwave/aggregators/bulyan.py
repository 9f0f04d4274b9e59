"""Bulyan: Krum chooses updates one by one, and a trimmed mean of every value follows (El Mhamdi et al., ICML 2018)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers
from fairwave.aggregators.krum import (
    FlagPerPair,
    Places,
    last_compared,
    neighbours_of,
    num_compared,
    sums_up_to,
)
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


class _Choosing(NamedTuple):
    """How far the choice is. Places are those in an update's order of its neighbours."""

    taken: Count
    left: FlagPerDevice
    there: FlagPerPair
    """Which neighbours are still left, in every update's order."""
    last: Places
    """Up to where an update is compared with them."""


def _chosen(rows: UpdatePerDevice, arrived: FlagPerDevice, attackers: Count, wanted: Count) -> FlagPerDevice:
    """The update that Krum chooses, then the one that it chooses among the others, and so on.

    Without the chosen update, every other one is compared with one neighbour fewer. If the chosen one was among its
    neighbours, the rest stay; otherwise its farthest is dropped. So nobody's neighbours are counted again.
    """
    near = neighbours_of(rows, arrived)
    place_of = jnp.argsort(near.who, axis=1)
    places = jnp.arange(rows.shape[0])

    def choose(now: _Choosing) -> _Choosing:
        best = jnp.argmin(sums_up_to(near, now.there, now.last, now.left))
        left, gone = now.left.at[best].set(False), place_of[:, best]
        there = now.there.at[places, gone].set(False)
        before = jnp.max(jnp.where(there & (places[None, :] < now.last[:, None]), places[None, :], 0), axis=1)
        last = jnp.where(gone < now.last, now.last, before)
        only_one = num_compared(left, attackers) == 1
        return _Choosing(now.taken + 1, left, there, jnp.where(only_one, jnp.argmax(there, axis=1), last))

    there = arrived[near.who]
    first = _Choosing(jnp.asarray(0), arrived, there, last_compared(there, num_compared(arrived, attackers)))
    return arrived & ~jax.lax.while_loop(lambda now: now.taken < wanted, choose, first).left


bulyan = Aggregator(
    name="bulyan",
    summary="Krum chooses updates one by one, and the values nearest to their median are averaged (El Mhamdi et "
    "al., ICML 2018).",
    step=_bulyan,
)
