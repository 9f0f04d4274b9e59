"""Who takes part in a round, who comes too late, and which samples each holds."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.data.partition import Holdings
from fairwave.engine.presence import Presence
from fairwave.keys import Stream, device_key, round_key
from fairwave.types import Count, FlagPerDevice, Key

Indices = Int[Array, " participant"]


class Attendance(eqx.Module):
    """One round's attendance."""

    chosen: Indices
    """Devices asked to take part, in ascending order; filled up with absent ones where too few are there."""
    participating: FlagPerDevice
    slow: FlagPerDevice
    """Participants that will not be ready in time."""
    reachable: FlagPerDevice
    """Devices that get what is released at the end of the round."""


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def attendance(
    num_devices: int,
    num_participants: int,
    straggler_probability: float,
    root: Key,
    number: Count,
    presence: Presence | None = None,
) -> Attendance:
    """The draw of one round among those who are there: the same for all schemes of a seed."""
    devices = jnp.arange(num_devices)
    everybody = jnp.ones(num_devices, bool)
    there = everybody if presence is None else presence.at(number)
    if num_participants == num_devices:
        chosen = devices
    else:
        line = jax.random.permutation(round_key(root, number, Stream.PARTICIPATION), devices)
        line = line[jnp.argsort(~there[line], stable=True)]  # the absent go to its end
        chosen = jnp.sort(line[:num_participants])
    participating = jnp.zeros(num_devices, bool).at[chosen].set(True) & there
    slow = jax.vmap(lambda index: jax.random.uniform(device_key(root, number, Stream.STRAGGLING, index)))(devices)
    reachable = everybody if presence is None else presence.reachable(number)
    return Attendance(chosen, participating, participating & (slow < straggler_probability), reachable)


def only(present: Attendance, able: FlagPerDevice) -> Attendance:
    """The attendance if only these can take part; what is released goes to the others all the same."""
    asked = present.participating & able
    return Attendance(present.chosen, asked, present.slow & asked, present.reachable)


def without(present: Attendance, gone: FlagPerDevice) -> Attendance:
    """The attendance if some devices were removed: not asked, and nothing sent to."""
    asked = present.participating & ~gone
    return Attendance(present.chosen, asked, present.slow & asked, present.reachable & ~gone)


class Window:
    """Which samples every device holds, round by round."""

    def __init__(self, holdings: Holdings) -> None:
        self._samples = jnp.asarray(holdings.samples)
        self._shares = jnp.asarray(holdings.shares)
        self._refreshed = holdings.refreshed
        self._most = int(holdings.counts.max())

    def at(self, number: Count) -> Int[Array, "device held"]:
        """Sample numbers held in a round, padded to the largest holding."""
        if self._refreshed == 0:
            return self._samples
        held: Array = _slid(self._samples, self._shares, number * self._refreshed, self._most)
        return held


@functools.partial(jax.jit, static_argnums=3)
def _slid(samples: Array, shares: Array, offset: Count, most: int) -> Int[Array, "device held"]:
    place = (offset + jnp.arange(most))[None, :] % shares[:, None]
    return jnp.take_along_axis(samples, place, axis=1)
