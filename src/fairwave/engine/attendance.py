"""Who takes part in a round, who comes too late, and which samples each holds."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.data.partition import Holdings
from fairwave.keys import Stream, device_key, round_key
from fairwave.types import Count, FlagPerDevice, Key

Indices = Int[Array, " participant"]


class Attendance(eqx.Module):
    """One round's attendance."""

    chosen: Indices
    """Devices asked to take part, in ascending order."""
    participating: FlagPerDevice
    slow: FlagPerDevice
    """Participants that will not be ready in time."""


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def attendance(
    num_devices: int, num_participants: int, straggler_probability: float, root: Key, number: Count
) -> Attendance:
    """The draw of one round: the same for all schemes of a seed."""
    devices = jnp.arange(num_devices)
    if num_participants == num_devices:
        chosen = devices
    else:
        chosen = jnp.sort(
            jax.random.permutation(round_key(root, number, Stream.PARTICIPATION), devices)[:num_participants]
        )
    participating = jnp.zeros(num_devices, bool).at[chosen].set(True)
    slow = jax.vmap(lambda index: jax.random.uniform(device_key(root, number, Stream.STRAGGLING, index)))(devices)
    return Attendance(chosen, participating, participating & (slow < straggler_probability))


class Window:
    """Which samples every device holds, round by round."""

    def __init__(self, holdings: Holdings) -> None:
        self._samples = jnp.asarray(holdings.samples)
        self._shares = jnp.asarray(holdings.shares)
        self._refreshed = holdings.refreshed
        self._most = int(holdings.counts.max())
        self.counts = jnp.asarray(holdings.counts)

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
