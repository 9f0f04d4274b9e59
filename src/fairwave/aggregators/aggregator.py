"""A robust aggregator: one step from many updates, some of which may come from attackers.

It replaces the mean of the updates in every scheme that takes the mean. It sees the updates themselves, and what the
access point has of its own: noise, and an update from samples that are no device's. Under record-level privacy it is
therefore post-processing and costs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.aggregators.order_statistics import median
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Key, Params, UpdatePerDevice


class OwnShare(eqx.Module):
    """What the access point brings to the aggregation of a round."""

    reference: Params
    """The update that training on its own samples gives; zero where the aggregator does not need them."""
    key: Key
    """The address of what the aggregator draws in the round."""


Step: TypeAlias = Callable[[Defences, UpdatePerDevice, FlagPerDevice, OwnShare], Params]
"""From all updates, one row each, a mask of those that count, and the access point's own share to the model's step.

The step is zero where no update counts.
"""


@dataclasses.dataclass(frozen=True)
class Aggregator:
    """A way to aggregate updates that scenarios can ask for by name."""

    extends: ClassVar[str] = "aggregators"

    name: str
    summary: str
    """What it does, in a line."""
    step: Step
    needs_server_data: bool = False
    """The access point needs samples of its own, from which it computes the reference."""


def num_attackers(settings: Defences, arrived: FlagPerDevice) -> Count:
    """How many of the updates that arrived may come from attackers, rounded down."""
    return jnp.floor(settings.attacker_share * jnp.sum(arrived) + 1e-9).astype(jnp.int32)


def weighted_mean(rows: UpdatePerDevice, counted: Float[Array, " device"] | FlagPerDevice) -> Params:
    """The weighted mean of the updates; zero where all weights are."""
    weight = counted.astype(rows.dtype)
    total = jnp.sum(weight)
    return jnp.where(total > 0.0, weight @ rows / jnp.where(total > 0.0, total, 1.0), 0.0)


def squared_distances(rows: UpdatePerDevice, arrived: FlagPerDevice) -> Float[Array, "device device"]:
    """Squared distance of every two updates; infinity where one is missing, or too long to be squared."""
    # Products of differences from the median, which a few attackers cannot move: of the updates themselves, or of
    # differences from a mean that one attacker can make infinite, they would be wrong or not a number for everybody.
    apart = jnp.where(arrived[:, None], rows - median(rows, arrived)[None, :], 0.0)
    squares = jnp.sum(apart * apart, axis=1)
    usable = arrived & jnp.isfinite(squares)
    apart, squares = jnp.where(usable[:, None], apart, 0.0), jnp.where(usable, squares, 0.0)
    found = jnp.maximum(squares[:, None] + squares[None, :] - 2.0 * apart @ apart.T, 0.0)
    return jnp.where(usable[:, None] & usable[None, :], found, jnp.inf)
