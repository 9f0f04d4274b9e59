"""Updates that come after their round's deadline, as the access point uses them in the round in which they are found.

A late update takes the same way as those of the round: it is checked for values that are not finite, judged by the
defences, aggregated, and its device is scored. It differs in one thing: after the defences it is scaled by a weight
that falls with its age. Whoever is on time in the same round counts with that update, and the late one is dropped.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from fairwave.defences.defence import Verdict
from fairwave.learning.model import Tree, flat_rows
from fairwave.learning.staleness import staleness_weight
from fairwave.policy.updates import Updates
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice

if TYPE_CHECKING:
    from fairwave.engine.invitation import Invitation
    from fairwave.engine.server_steps import Upload
    from fairwave.scenario.parameters import Scenario


class LateUpload(NamedTuple):
    """What came late in a round, with a leading axis of places that need not all be filled."""

    devices: Int[Array, " place"]
    """The device that sent each update; the number of devices for a place without one."""
    arrived: Bool[Array, " place"]
    """A mask of the updates that were found in this round."""
    age: Int[Array, " place"]
    """Rounds since the one that each update was asked for in."""
    updates: Tree
    reported_noise_std: Array
    reported_loss: Array
    num_samples: Array
    dropped: FlagPerDevice
    """A mask over all devices: whose late update is given up in this round, because it would be too old."""


class LateUse(eqx.Module):
    """What became of late updates in a round, for every device."""

    age: Int[Array, " device"]
    """Age of the late update that was found and judged in this round; 0 for none."""
    weight: PerDevice
    """The weight that it had; 0 for none."""
    dropped: FlagPerDevice
    """A mask of the updates that were given up in this round."""


class Arrivals(NamedTuple):
    """All updates that the access point works on in a round: those of its participants, then those that came late."""

    devices: Int[Array, " row"]
    """The device that sent each row. No device has two: what is not to be used bears the number of devices."""
    arrived: Bool[Array, " row"]
    rows: UpdatePerDevice
    reported_noise_std: Array
    reported_loss: Array
    num_samples: Array
    age: Int[Array, " row"]
    """Rounds since the one that each update was asked for in; 0 for those of this round."""
    weight: Array | None
    """The weight of every row; None where late updates are not used, so that all count alike."""


def late_places(scenario: Scenario) -> int:
    """The most updates that can be late at the same time: one of each device, or all of the last rounds."""
    cell = scenario.cell
    return min(cell.num_devices, (cell.participants or cell.num_devices) * scenario.learning.late_rounds)


def arrivals(upload: Upload, invitation: Invitation, decay: float) -> tuple[Arrivals, LateUse | None]:
    """The rows of a round, and what became of late updates; None where they are not used."""
    chosen, late = invitation.participants, upload.late
    in_time = Arrivals(
        devices=chosen,
        arrived=upload.delivered[chosen],
        rows=flat_rows(upload.updates)[0],
        reported_noise_std=upload.reported_noise_std,
        reported_loss=upload.reported_loss,
        num_samples=upload.num_samples,
        age=jnp.zeros(chosen.shape, int),
        weight=None,
    )
    if late is None:
        return in_time, None
    size = upload.delivered.size
    used = late.arrived & ~upload.delivered[late.devices]  # the newest counts
    theirs = jnp.where(used, late.devices, size)
    weight = jnp.where(used, staleness_weight(late.age, decay), 0.0)
    nothing = jnp.zeros(size)
    use = LateUse(
        age=jnp.zeros(size, late.age.dtype).at[theirs].set(late.age, mode="drop"),
        weight=nothing.at[theirs].set(weight, mode="drop"),
        dropped=late.dropped,
    )
    late_rows = Arrivals(
        devices=theirs,
        arrived=used,
        rows=flat_rows(late.updates)[0],
        reported_noise_std=late.reported_noise_std,
        reported_loss=late.reported_loss,
        num_samples=late.num_samples,
        age=late.age,
        weight=weight,
    )
    first = in_time._replace(
        devices=jnp.where(use.age[chosen] > 0, size, chosen), weight=jnp.ones(chosen.shape, weight.dtype)
    )
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other.astype(one.dtype)]), first, late_rows), use


def weighed(updates: Updates, verdict: Verdict, weight: Array | None) -> tuple[Updates, Verdict]:
    """Updates that stand up to the defences, scaled by their weights: as they move the model and are compared."""
    if weight is None:
        return updates, verdict
    each = weight.astype(updates.rows.dtype)
    scaled = dataclasses.replace(
        updates, rows=each[:, None] * updates.rows, reported_noise_std=weight * updates.reported_noise_std
    )
    return scaled, dataclasses.replace(verdict, compared=each[:, None] * verdict.compared)
