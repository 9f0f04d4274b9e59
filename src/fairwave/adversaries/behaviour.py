"""A behaviour: what a device that misbehaves does differently. Whatever it leaves out stays honest.

Every part is a function of one device, from what that device knows: its copies, its own training, its own past. The one
exception is what a coalition sends: a function of the updates that its own members trained for, and of nobody else's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.policy.effort import Effort
from fairwave.types import Count, Key, Params, Scalar, UpdatePerDevice

SHORTEST = 1e-30
"""Length below which a vector has no direction."""


class DeviceKnowledge(eqx.Module):
    """What a device knows when it sends its update, as flat vectors."""

    received: Params
    """Its copy of the model in this round."""
    received_before: Params
    """Its copy in the round before."""
    received_first: Params
    """Its copy in the first round that it took part in."""
    honest: Params
    """The update that its training gave, as far as it trained."""
    sent_before: Params
    """The update that it sent last."""
    sent_first: Params
    """The first update that it sent."""
    usual_length: Scalar
    """Length of the last update that it trained for honestly; of this one before that."""
    strength: Scalar
    """How strongly it misbehaves, as the scenario has it."""
    round_index: Count
    """The round, counted from 0."""
    key: Key


class CoalitionKnowledge(eqx.Module):
    """What the attackers of one entry know together when they send their updates; no row is of any other device."""

    honest: UpdatePerDevice
    """The updates that the members' training gave, one row each, in the order in which devices are numbered."""
    num_devices: Count
    """How many devices send an update in the round, the members included; anybody may know that."""
    strength: Scalar
    """How strongly they misbehave, as the scenario has it."""
    keys: Key
    """A key for each member."""


class Habit(eqx.Module):
    """What an adaptive device carries over: the share of the planned iterations that it does."""

    share: Scalar


ReplaceUpdate: TypeAlias = Callable[[DeviceKnowledge], Params]
ReplaceTogether: TypeAlias = Callable[[CoalitionKnowledge], UpdatePerDevice]
PlanningBelief: TypeAlias = Callable[[Effort, Scalar], Effort]
Adapt: TypeAlias = Callable[[Habit, Scalar, Scalar], Habit]


@dataclasses.dataclass(frozen=True)
class Trigger:
    """A mark in the inputs of a sample, and the class that it is to stand for."""

    mark: Callable[[Array], Array]
    """From the inputs of some samples to the same with the mark; each sample by itself."""
    target: int


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """One way to misbehave."""

    extends: ClassVar[str] = "behaviours"

    name: str
    summary: str
    """What it does, and what its strength means."""
    strength: float | None = 1.0
    """Default strength; None where it has no meaning."""
    replace_update: ReplaceUpdate | None = None
    """What the device sends instead of its update."""
    replace_together: ReplaceTogether | None = None
    """What the devices of one entry send instead of their updates, one row each, after they have pooled them."""
    share_of_iterations: Callable[[Scalar], Scalar] | None = None
    """From its strength: the share of the planned iterations that it does."""
    share_of_data: Callable[[Scalar], Scalar] | None = None
    """From its strength: the share of its samples that it trains on."""
    flips_labels: bool = False
    """It trains on the wrong classes."""
    trigger: Trigger | None = None
    """It trains on some of its samples with this mark, as samples of this class, and on the others as they are."""
    planning_belief: PlanningBelief | None = None
    """What it makes itself believe about effort before it plans."""
    adapts: Adapt | None = None
    """How its habit follows the deviation that it receives, given its strength."""
    pools_copies: bool = False
    """Devices of the same entry average their copies before they train."""

    @property
    def needs_company(self) -> bool:
        """Whether it takes several devices: they pool their copies or their updates."""
        return self.pools_copies or self.replace_together is not None


def nothing(strength: Scalar) -> Scalar:
    """A share of none at all."""
    return jnp.zeros_like(strength)


def as_strong(strength: Scalar) -> Scalar:
    """A share that is the strength."""
    return jnp.clip(strength, 0.0, 1.0)


def sent_by_all(update: Params, known: CoalitionKnowledge) -> UpdatePerDevice:
    """The same update for every member."""
    return jnp.broadcast_to(update, known.honest.shape).astype(known.honest.dtype)


def of_length(direction: Params, length: Scalar) -> Params:
    """A vector of that direction and length; zero if it has no direction."""
    own = jnp.sqrt(jnp.sum(direction**2))
    return jnp.where(own > SHORTEST, direction * (length / jnp.maximum(own, SHORTEST)), 0.0).astype(direction.dtype)
