"""Krum: the one update whose nearest neighbours are nearest (Blanchard et al., NeurIPS 2017)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fairwave.aggregators.aggregator import Aggregator, OwnShare, num_attackers, squared_distances
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Params, PerDevice, UpdatePerDevice

LARGEST = float(np.finfo(np.float32).max)


def krum_scores(apart: Float[Array, "device device"], arrived: FlagPerDevice, attackers: Count) -> PerDevice:
    """Sum of the squared distances to the nearest others: two fewer than there are honest devices, at least one.

    It is infinite for updates that did not arrive, and for no other: those that are too far from all others to be
    measured share the largest number. `apart` holds all squared distances.
    """
    neighbours = jnp.maximum(jnp.sum(arrived) - attackers - 2, 1)
    others = jnp.where(jnp.eye(apart.shape[0], dtype=bool), jnp.inf, apart)
    place = jnp.arange(apart.shape[0])
    nearest = jnp.where((place < neighbours)[None, :], jnp.sort(others, axis=1), 0.0)
    return jnp.where(arrived, jnp.minimum(jnp.sum(nearest, axis=1), LARGEST), jnp.inf)


def _chosen(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    scores = krum_scores(squared_distances(rows, arrived), arrived, num_attackers(settings, arrived))
    return jnp.where(jnp.any(arrived), rows[jnp.argmin(scores)], 0.0)


krum = Aggregator(
    name="krum",
    summary="the one update whose nearest neighbours are nearest (Blanchard et al., NeurIPS 2017)",
    step=_chosen,
)
