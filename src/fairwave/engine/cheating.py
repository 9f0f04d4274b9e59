"""Who misbehaves in a round, and what comes of it: the acts of `adversaries`, mapped over the devices that do them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fairwave.adversaries import ALL
from fairwave.adversaries.behaviour import Behaviour, Forge, Habit, Witness
from fairwave.engine.past import Past
from fairwave.keys import Stream, device_key
from fairwave.learning.model import Tree, flat_rows
from fairwave.policy.device_plan import DevicePlan, with_share
from fairwave.policy.effort import Effort
from fairwave.policy.effort_fit import EffortMemory
from fairwave.policy.fleet import Fleet, per_device_axes
from fairwave.scenario.cheating_parameters import Adversary
from fairwave.types import Count, FlagPerDevice, Key, PerDevice, Scalar

_LEAST_NOISE = 1e-12


@dataclasses.dataclass(frozen=True)
class Role:
    """One entry of the scenario, in a round in which it is played."""

    behaviour: Behaviour
    played_by: np.ndarray
    """Flag per device."""
    strength: float


class Cast:
    """All entries of a scenario."""

    def __init__(self, entries: Sequence[Adversary], num_devices: int) -> None:
        self._entries = entries
        self._num_devices = num_devices

    def start(self, received: Tree) -> Past | None:
        """Before the first round; nothing is remembered if nobody ever misbehaves."""
        if not self._entries:
            return None
        each = jnp.zeros(self._num_devices)
        blank = jax.tree.map(jnp.zeros_like, received)
        return Past(received=received, sent=blank, usual_length=each, habit=Habit(share=jnp.ones_like(each)))

    def roles(self, number: int) -> list[Role]:
        """Those played in a round, counted from 0."""
        played = []
        for entry in self._entries:
            if entry.first_round <= number + 1 <= (entry.last_round or number + 1):
                behaviour = ALL[entry.behaviour]
                members = np.isin(np.arange(self._num_devices), entry.devices)
                strength = behaviour.strength if entry.strength is None else entry.strength
                played.append(Role(behaviour, members, 1.0 if strength is None else strength))
        return played


def anybody(roles: Sequence[Role], num_devices: int) -> np.ndarray:
    """Who misbehaves at all."""
    return np.any([role.played_by for role in roles], axis=0) if roles else np.zeros(num_devices, bool)


def beliefs(roles: Sequence[Role], memory: EffortMemory) -> EffortMemory:
    """What devices believe about effort when they plan."""
    effort = memory.effort
    for role in roles:
        if role.behaviour.believes is not None:
            effort = _chosen(role, role.behaviour.believes(effort, jnp.full_like(effort.scale, role.strength)), effort)
    return dataclasses.replace(memory, effort=effort)


def plans(roles: Sequence[Role], plan: DevicePlan, fleet: Fleet, memory: EffortMemory, past: Past) -> DevicePlan:
    """What devices do of what they planned."""
    share = jnp.ones_like(plan.energy_j)
    for role in roles:
        part = role.behaviour.share_of_iterations
        if part is not None:
            share = _chosen(role, part(jnp.full_like(share, role.strength)), share)
        if role.behaviour.adapts is not None:
            share = _chosen(role, past.habit.share, share)

    def one(member: Fleet, own: DevicePlan, part: Scalar, effort: Effort) -> DevicePlan:
        return with_share(member.device, member.preferences, effort, own, part)

    reduced: DevicePlan = jax.vmap(one, in_axes=(per_device_axes(fleet), 0, 0, 0))(fleet, plan, share, memory.effort)
    return reduced


def copies(roles: Sequence[Role], received: Tree, noise_std: PerDevice) -> Tree:
    """The models that devices start from: a coalition's members share their best guess."""
    for role in roles:
        if role.behaviour.pools:
            members = jnp.asarray(role.played_by)
            precision = jnp.where(members, 1.0 / jnp.maximum(noise_std, _LEAST_NOISE) ** 2, 0.0)
            weights = (precision / jnp.sum(precision)).astype(jnp.float32)
            guess = jax.tree.map(lambda leaf, w=weights: jnp.tensordot(w, leaf, axes=1)[None], received)
            received = _chosen(role, guess, received)
    return received


def holdings(roles: Sequence[Role], counts: Array) -> tuple[Array, FlagPerDevice]:
    """How many of their samples devices train on, and whether on the wrong classes."""
    if not roles:
        return counts, jnp.zeros(counts.shape, bool)
    share, flipped = np.ones(counts.shape), np.zeros(counts.shape, bool)
    for role in roles:
        if role.behaviour.share_of_data is not None:
            share[role.played_by] = float(role.behaviour.share_of_data(jnp.asarray(role.strength)))
        flipped |= role.played_by & role.behaviour.flips_labels
    return jnp.maximum(1, jnp.floor(counts * share)).astype(counts.dtype), jnp.asarray(flipped)


def updates(
    roles: Sequence[Role], honest: Tree, received: Tree, past: Past, root: Key, number: Count, chosen: Array
) -> Tree:
    """What participants send; `honest` has their axis, everything else that of all devices."""
    if all(role.behaviour.forge is None for role in roles):
        return honest
    flat, unravel = flat_rows(honest)
    mine, before, sent = (flat_rows(tree)[0][chosen] for tree in (received, past.received, past.sent))
    own_length = jnp.sqrt(jnp.sum(flat**2, axis=1))
    usual = jnp.where(past.usual_length[chosen] > 0.0, past.usual_length[chosen], own_length)
    keys = jax.vmap(lambda index: device_key(root, number, Stream.ADVERSARY, index))(chosen)
    rounds = jnp.broadcast_to(number, chosen.shape)
    for role in roles:
        if role.behaviour.forge is None:
            continue
        strength = jnp.full(chosen.shape, role.strength)
        told = _forged(role.behaviour.forge, Witness(mine, before, flat, sent, usual, strength, rounds, keys))
        flat = jnp.where(jnp.asarray(role.played_by)[chosen][:, None], told, flat)
    return jax.vmap(unravel)(flat)


@functools.partial(jax.jit, static_argnums=0)
def _forged(forge: Forge, witness: Witness) -> Float[Array, "participant param"]:
    told: Array = jax.vmap(forge)(witness)
    return told


def remembered(
    roles: Sequence[Role],
    past: Past,
    received: Tree,
    sent: Tree,
    honest: np.ndarray,
    deviation: PerDevice,
    chosen: Array,
) -> Past:
    """The past as the next round will see it."""
    lengths = jnp.sqrt(jnp.sum(flat_rows(sent)[0] ** 2, axis=1))
    usual = jnp.where(jnp.asarray(honest)[chosen], lengths, past.usual_length[chosen])
    habit = past.habit
    for role in roles:
        if role.behaviour.adapts is not None:
            strength = jnp.full(deviation.shape, role.strength)
            habit = _chosen(role, role.behaviour.adapts(habit, deviation, strength), habit)
    return Past(
        received=received,
        sent=jax.tree.map(lambda old, new: old.at[chosen].set(new), past.sent, sent),
        usual_length=past.usual_length.at[chosen].set(usual),
        habit=habit,
    )


def _chosen(role: Role, acted: Tree, honest: Tree) -> Tree:
    """What the role's devices do, and what all others do."""
    flags = jnp.asarray(role.played_by)
    return jax.tree.map(lambda new, old: jnp.where(flags.reshape(-1, *[1] * (old.ndim - 1)), new, old), acted, honest)
