"""Bulyan: Krum chooses updates one by one, and a trimmed mean of every value follows (El Mhamdi et al., ICML 2018)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers
from fairwave.aggregators.krum import LARGEST, FlagPerPair, Places, last_compared, neighbours_of, num_compared
from fairwave.aggregators.order_statistics import mean_of_nearest, median
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
    return jnp.where(count > 0, mean_of_nearest(rows, chosen, middle, used), 0.0)


class _Ranks(NamedTuple):
    """The neighbours that are left in every update's order, as lists: taking one out takes one step.

    Places count from 1; 0 is before the first, and the last but one is the farthest.
    """

    before: Int[Array, "device place"]
    after: Int[Array, "device place"]


class _Choosing(NamedTuple):
    """How far the choice is."""

    taken: Count
    left: FlagPerDevice
    ranks: _Ranks
    last: Places
    """Up to where an update is compared."""
    total: Float[Array, " device"]
    """Sum of the squared distances up to there that can be measured."""
    far: Count
    """How many of the updates up to there are too far away to be measured."""


def _chosen(rows: UpdatePerDevice, arrived: FlagPerDevice, attackers: Count, wanted: Count) -> FlagPerDevice:
    """The update that Krum chooses, then the one that it chooses among the others, and so on.

    Without the chosen update, every other one is compared with one neighbour fewer. If the chosen one was among its
    neighbours, the rest stay; otherwise its farthest is dropped. So nobody's neighbours are counted again.
    """
    near = neighbours_of(rows, arrived)
    number, places = rows.shape[0], jnp.arange(rows.shape[0])
    place_of = jnp.zeros_like(near.who).at[places[:, None], near.who].set(places[None, :] + 1)
    apart = jnp.pad(near.apart.astype(jnp.float64), ((0, 0), (1, 1)))
    measured, unmeasured = jnp.where(jnp.isfinite(apart), apart, 0.0), jnp.isinf(apart)

    def choose(now: _Choosing) -> _Choosing:
        scores = jnp.where(now.far > 0, LARGEST, jnp.minimum(now.total, LARGEST))
        best = jnp.argmin(jnp.where(now.left, scores, jnp.inf))
        left, gone = now.left.at[best].set(False), place_of[:, best]
        ranks = _without(now.ranks, gone)
        fewer = num_compared(left, attackers) < num_compared(now.left, attackers)
        # One neighbour fewer: the chosen one, or else the farthest. If one has to stay, it is the nearest that is left.
        dropped = jnp.minimum(gone, now.last)
        nearest = ranks.after[:, 0]
        shorter = jnp.where(gone < now.last, now.last, now.ranks.before[places, now.last])
        return _Choosing(
            taken=now.taken + 1,
            left=left,
            ranks=ranks,
            last=jnp.where(fewer, shorter, nearest),
            total=jnp.where(fewer, now.total - measured[places, dropped], measured[places, nearest]),
            far=jnp.where(fewer, now.far - unmeasured[places, dropped], unmeasured[places, nearest].astype(jnp.int64)),
        )

    there = arrived[near.who]
    last = last_compared(there, num_compared(arrived, attackers)) + 1
    up_to = jnp.pad(there, ((0, 0), (1, 1))) & (jnp.arange(number + 2)[None, :] <= last[:, None])
    total = jnp.sum(jnp.where(up_to, measured, 0.0), axis=1)
    first = _Choosing(jnp.asarray(0), arrived, _ranks(there), last, total, jnp.sum(up_to & unmeasured, axis=1))
    return arrived & ~jax.lax.while_loop(lambda now: now.taken < wanted, choose, first).left


def _ranks(there: FlagPerPair) -> _Ranks:
    """Lists of those that are there."""
    number = there.shape[1]
    places = jnp.arange(1, number + 1)[None, :]
    last_there = jax.lax.cummax(jnp.where(there, places, 0), axis=1)
    next_there = jax.lax.cummin(jnp.where(there, places, number + 1), axis=1, reverse=True)
    return _Ranks(
        before=jnp.pad(last_there, ((0, 0), (2, 0))),
        after=jnp.pad(next_there, ((0, 0), (0, 2)), constant_values=number + 1),
    )


def _without(ranks: _Ranks, gone: Places) -> _Ranks:
    """Lists without one place of each."""
    lists = jnp.arange(gone.size)
    before, after = ranks.before[lists, gone], ranks.after[lists, gone]
    return _Ranks(ranks.before.at[lists, after].set(before), ranks.after.at[lists, before].set(after))


bulyan = Aggregator(
    name="bulyan",
    summary="Krum chooses updates one by one, and the values nearest to their median are averaged (El Mhamdi et "
    "al., ICML 2018).",
    step=_bulyan,
)
