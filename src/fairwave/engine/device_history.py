"""What the access point remembers of devices because a defence makes use of it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairwave.defences.defence import PAST, SKETCH, in_use, sketches
from fairwave.engine.model_copies import Copies
from fairwave.learning.model import flat_rows
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice


class RecentRounds(eqx.Module):
    """The last rounds of every device, the newest first; noise itself is drawn again from its address."""

    noise_std: Float[Array, "past device"]
    """Std of the noise that was released to each device."""
    sketches: Float[Array, "past device sketch"]
    """Sketches of the updates that each device sent."""
    copies_before: UpdatePerDevice | None
    """The copy that each held in the round before; None if no defence asks for it."""


class DeviceHistory(eqx.Module):
    """What is remembered of every device, with a leading device axis."""

    recent: RecentRounds | None
    """None if no defence looks back."""
    reputation: PerDevice
    """Starts at 1 and falls whenever the device is caught."""
    caught: FlagPerDevice
    """Caught in the last round that it took part in: its gradient is not used until it is not."""


def no_history(settings: Defences, copies: Copies, num_devices: int) -> DeviceHistory | None:
    """Before the first round; None if there is no defence."""
    used = in_use(settings)
    if not used:
        return None
    recent = None
    if any(defence.looks_back for defence in used):
        rows = flat_rows(copies.of_devices)[0]
        recent = RecentRounds(
            noise_std=jnp.zeros((PAST, num_devices)),
            sketches=jnp.zeros((PAST, num_devices, SKETCH), rows.dtype),
            copies_before=rows if any(defence.needs_copies for defence in used) else None,
        )
    return DeviceHistory(recent=recent, reputation=jnp.ones(num_devices), caught=jnp.zeros(num_devices, bool))


def removed(settings: Defences, history: DeviceHistory) -> FlagPerDevice:
    """A mask of the devices that are not asked any more."""
    if not any(defence.removes_devices for defence in in_use(settings)):
        return jnp.zeros(history.reputation.shape, bool)
    return history.reputation < settings.reputation_threshold


def after_round(
    settings: Defences,
    history: DeviceHistory,
    received: Updates,
    caught: Bool[Array, " participant"],
    copies: Copies,
    noise_std: PerDevice,
) -> DeviceHistory:
    """The history after a round in which devices held these copies, and were released noise of these levels."""
    chosen, arrived, memory = received.devices, received.arrived, settings.reputation_memory
    current = memory * history.reputation[chosen] + (1.0 - memory) * ~caught
    reputation = history.reputation.at[chosen].set(jnp.where(arrived, current, history.reputation[chosen]))
    flags = history.caught.at[chosen].set(jnp.where(arrived, caught, history.caught[chosen]))
    if history.recent is None:
        return DeviceHistory(None, reputation, flags)
    old = history.recent
    theirs = old.sketches[:, chosen]
    newer = jnp.concatenate([sketches(received.rows)[None], theirs[:-1]])
    recent = RecentRounds(
        noise_std=jnp.concatenate([noise_std[None], old.noise_std[:-1]]),
        sketches=old.sketches.at[:, chosen].set(jnp.where(arrived[None, :, None], newer, theirs)),
        copies_before=None if old.copies_before is None else flat_rows(copies.of_devices)[0],
    )
    return DeviceHistory(recent, reputation, flags)
