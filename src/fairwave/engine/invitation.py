"""Who is invited to a round, who will come too late, and who gets what is released at its end."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.engine.presence import Presence
from fairwave.engine.programs import program
from fairwave.keys import Stream, device_key, round_key
from fairwave.types import Count, FlagPerDevice, Key


class Invitation(eqx.Module):
    """One round's participants."""

    participants: Int[Array, " participant"]
    """Devices drawn for the round, in ascending order; filled up with absent ones where too few are there."""
    participating: FlagPerDevice
    """A mask of those that take part: drawn, there, and able to."""
    stragglers: FlagPerDevice
    """A mask of participants that will not be ready in time."""
    reachable: FlagPerDevice
    """A mask of the devices that get what is released at the end of the round."""

    def only(self, able: FlagPerDevice) -> Invitation:
        """Without those that cannot take part; what is released goes to them all the same."""
        asked = self.participating & able
        return dataclasses.replace(self, participating=asked, stragglers=self.stragglers & asked)

    def without(self, gone: FlagPerDevice) -> Invitation:
        """Without devices that were removed: not asked, and nothing is sent to them."""
        return dataclasses.replace(self.only(~gone), reachable=self.reachable & ~gone)


@program(static_argnums=(0, 1, 2))
def draw_participants(
    num_devices: int,
    num_participants: int,
    straggler_probability: float,
    root: Key,
    round_index: Count,
    presence: Presence | None = None,
) -> Invitation:
    """The draw of one round among the devices that are there: the same for all schemes of a seed."""
    devices = jnp.arange(num_devices)
    everybody = jnp.ones(num_devices, bool)
    there = everybody if presence is None else presence.at(round_index)
    if num_participants == num_devices:
        chosen = devices
    else:
        line = jax.random.permutation(round_key(root, round_index, Stream.PARTICIPATION), devices)
        if presence is not None:
            line = line[jnp.argsort(~there[line], stable=True)]  # the absent go to its end
        chosen = jnp.sort(line[:num_participants])
    participating = jnp.zeros(num_devices, bool).at[chosen].set(True) & there
    late = participating & straggle(num_devices, straggler_probability, root, round_index)
    reachable = everybody if presence is None else presence.reachable(round_index)
    return Invitation(chosen, participating, late, reachable)


@program(static_argnums=(0, 1))
def straggle(num_devices: int, straggler_probability: float, root: Key, round_index: Count) -> FlagPerDevice:
    """A mask of the devices that are not ready by the deadline of a round, if they are at work in it."""
    if straggler_probability == 0.0:
        return jnp.zeros(num_devices, bool)
    chance = jax.vmap(lambda index: jax.random.uniform(device_key(root, round_index, Stream.STRAGGLING, index)))(
        jnp.arange(num_devices)
    )
    return chance < straggler_probability
