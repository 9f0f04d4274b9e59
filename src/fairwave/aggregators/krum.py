"""Krum: the one update whose nearest neighbours are nearest (Blanchard et al., NeurIPS 2017)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers, squared_distances
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Params, PerDevice, UpdatePerDevice

FlagPerPair: TypeAlias = Bool[Array, "device device"]
Places: TypeAlias = Int[Array, " device"]
LARGEST = float(np.finfo(np.float32).max)


class Neighbours(NamedTuple):
    """Every update's others, the nearest first."""

    apart: Float[Array, "device device"]
    """Squared distances, ascending; infinite where an update is missing or too far away to be measured."""
    who: Int[Array, "device device"]


def neighbours_of(rows: UpdatePerDevice, arrived: FlagPerDevice) -> Neighbours:
    """Sorted once, so that scores among any of the updates take one pass."""
    apart = squared_distances(rows, arrived)
    others = jnp.where(jnp.eye(apart.shape[0], dtype=bool), jnp.inf, apart)
    who = jnp.argsort(others, axis=1)
    return Neighbours(jnp.take_along_axis(others, who, axis=1), who)


def krum_scores(near: Neighbours, among: FlagPerDevice, attackers: Count) -> PerDevice:
    """Sum of the squared distances to the nearest others: as many as `num_compared` says."""
    there = among[near.who]
    return sums_up_to(near, there, last_compared(there, num_compared(among, attackers)), among)


def num_compared(among: FlagPerDevice, attackers: Count) -> Count:
    """To how many others an update is compared: two fewer than there are honest devices, at least one."""
    return jnp.maximum(jnp.sum(among) - attackers - 2, 1)


def last_compared(there: FlagPerPair, compared: Count) -> Places:
    """The place of the farthest of the nearest others in every update's order; `there` has those that count."""
    return jnp.argmax(jnp.cumsum(there, axis=1) >= compared, axis=1)


def sums_up_to(near: Neighbours, there: FlagPerPair, last: Places, among: FlagPerDevice) -> PerDevice:
    """Sum of the squared distances to all others that count, up to a place in every update's order.

    It is infinite for updates that are not among those compared, and for no other: those that are too far from all
    others to be measured share the largest number.
    """
    nearest = there & (jnp.arange(there.shape[1])[None, :] <= last[:, None])
    total = jnp.sum(jnp.where(nearest, near.apart, 0.0), axis=1)
    return jnp.where(among, jnp.minimum(total, LARGEST), jnp.inf)


def _chosen(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    scores = krum_scores(neighbours_of(rows, arrived), arrived, num_attackers(settings, arrived))
    return jnp.where(jnp.any(arrived), rows[jnp.argmin(scores)], 0.0)


krum = Aggregator(
    name="krum",
    summary="The step is the one update whose nearest neighbours are nearest (Blanchard et al., NeurIPS 2017).",
    step=_chosen,
)
