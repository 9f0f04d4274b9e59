"""The wire of a simulation: updates that have left their devices and have not reached the access point yet.

A participant that is late in a round is late in the next ones too, each time with the scenario's
`cell.straggler_probability`, until its update arrives or is too old. It is not asked meanwhile. There is a place for
each update that can be late at the same time, not one for each device.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from fairwave.engine.late_updates import LateUpload
from fairwave.engine.programs import program
from fairwave.learning.model import Tree
from fairwave.types import Count, FlagPerDevice, PerDevice


class Sent(eqx.Module):
    """What is known of updates beside themselves, with a leading axis of updates."""

    updates: Tree
    reported_noise_std: Array
    reported_loss: Array
    num_samples: Array
    compute_energy_j: Array
    """What the device spent on it, from which it learns once it is scored."""
    carried: Bool[Array, " place"]
    """The channel carries it; otherwise the access point learns in the end that nothing comes."""


class OnTheWay(eqx.Module):
    """Late updates, each in a place of its own."""

    devices: Int[Array, " place"]
    """The device that sent each update; the number of devices for a free place."""
    asked_in: Int[Array, " place"]
    """The round that it was asked for in."""
    sent: Sent

    def of_all(self, values: Array, num_devices: int) -> Array:
        """One value of each update in the order of all devices; 0 for a device without one."""
        return jnp.zeros(num_devices, values.dtype).at[self.devices].set(values, mode="drop")


def nothing_on_the_way(params: Tree, places: int, num_devices: int) -> OnTheWay:
    """Before the first round."""
    each = jnp.zeros(places)
    return OnTheWay(
        devices=jnp.full(places, num_devices),
        asked_in=jnp.zeros(places, int),
        sent=Sent(
            updates=jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype), params),
            reported_noise_std=each,
            reported_loss=each,
            num_samples=jnp.zeros(places, int),
            compute_energy_j=each,
            carried=jnp.zeros(places, bool),
        ),
    )


def busy(on_the_way: OnTheWay, num_devices: int) -> FlagPerDevice:
    """A mask of the devices that are not done with an earlier round."""
    return on_the_way.of_all(jnp.ones(on_the_way.devices.shape, bool), num_devices)


@program()
def found(on_the_way: OnTheWay, straggling: FlagPerDevice, round_index: Count, late_rounds: int) -> LateUpload:
    """What arrives in a round: updates of devices that do not straggle again; those that are too old are dropped."""
    sent, devices = on_the_way.sent, on_the_way.devices
    arrives, too_old = _ended(on_the_way, straggling, round_index, late_rounds)
    return LateUpload(
        devices=devices,
        arrived=arrives & sent.carried,
        age=round_index - on_the_way.asked_in,
        updates=sent.updates,
        reported_noise_std=sent.reported_noise_std,
        reported_loss=sent.reported_loss,
        num_samples=sent.num_samples,
        dropped=on_the_way.of_all(too_old, straggling.size),
    )


@program()
def after_round(
    before: OnTheWay,
    straggling: FlagPerDevice,
    round_index: Count,
    late_rounds: int,
    late: tuple[FlagPerDevice, Int[Array, " participant"]],
    sent: Sent,
) -> OnTheWay:
    """What is on its way after a round: without what has arrived or was dropped, and with what is late now.

    `late` is a mask of the devices whose update of this round is late, and the participants that `sent` is of.
    """
    mask, participants = late
    size, places = mask.size, before.devices.size
    arrives, too_old = _ended(before, straggling, round_index, late_rounds)
    kept = jnp.where(arrives | too_old, size, before.devices)
    # The first free place for the first that is late, and so on; everybody else's lies beyond the last.
    is_late, free = mask[participants], jnp.argsort(kept < size, stable=True)
    place = jnp.where(is_late, free[jnp.minimum(jnp.cumsum(is_late) - 1, places - 1)], places)

    def with_new(old: Array, new: Array) -> Array:
        return old.at[place].set(new.astype(old.dtype), mode="drop")

    return OnTheWay(
        devices=with_new(kept, participants),
        asked_in=with_new(before.asked_in, jnp.broadcast_to(round_index, participants.shape)),
        sent=jax.tree.map(with_new, before.sent, sent),
    )


def observed_energy_j(on_the_way: OnTheWay, num_devices: int) -> PerDevice:
    """What each device spent on the update that is on its way; 0 for none."""
    return on_the_way.of_all(on_the_way.sent.compute_energy_j, num_devices)


def _ended(
    on_the_way: OnTheWay, straggling: FlagPerDevice, round_index: Count, late_rounds: int
) -> tuple[Bool[Array, " place"], Bool[Array, " place"]]:
    """Masks of the updates whose wait ends with a round: those that arrive, and those that are too old for the next."""
    waits, devices = on_the_way.devices < straggling.size, on_the_way.devices
    arrives = waits & ~straggling[devices]
    return arrives, waits & ~arrives & (round_index - on_the_way.asked_in >= late_rounds)
