"""What the access point keeps about devices, because a defence makes use of it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.defences.defence import PAST, SKETCH, sketches
from fairwave.defences.judgement import in_use
from fairwave.learning.model import Tree, flat_rows
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice


class History(eqx.Module):
    """The last rounds of every device, the newest first; noise itself is drawn again from its address."""

    levels: Float[Array, "past device"]
    """Std of the noise that was released to each."""
    sketches: Float[Array, "past device sketch"]
    """Of what each sent last."""
    copies_before: UpdatePerDevice | None
    """The copy that each held in the round before; None if no defence asks for it."""


class Dossier(eqx.Module):
    """With a leading device axis."""

    history: History | None
    """None if no defence looks back."""
    reputation: PerDevice
    """From 1, falling while the device is caught."""
    caught: FlagPerDevice
    """In the last round that it took part in: what it sends is not trusted until it is not."""


class Hearing(eqx.Module):
    """A round's participants before the access point, with their axis."""

    chosen: Array
    arrived: FlagPerDevice
    caught: FlagPerDevice
    updates: UpdatePerDevice


def no_dossier(settings: Defences, received: Tree) -> Dossier | None:
    """Before the first round; None if there is no defence."""
    used = [defence for _, defence in in_use(settings)]
    if not used:
        return None
    copies = flat_rows(received)[0]
    num_devices, history = copies.shape[0], None
    if any(defence.looks_back for defence in used):
        history = History(
            levels=jnp.zeros((PAST, num_devices)),
            sketches=jnp.zeros((PAST, num_devices, SKETCH), copies.dtype),
            copies_before=copies if any(defence.needs_copies for defence in used) else None,
        )
    return Dossier(history=history, reputation=jnp.ones(num_devices), caught=jnp.zeros(num_devices, bool))


def removed(settings: Defences, dossier: Dossier) -> FlagPerDevice:
    """Who is not asked any more."""
    if not any(defence.removes for _, defence in in_use(settings)):
        return jnp.zeros(dossier.reputation.shape, bool)
    return dossier.reputation < settings.reputation_threshold


def with_round(
    settings: Defences, dossier: Dossier, hearing: Hearing, copies: UpdatePerDevice, levels: PerDevice
) -> Dossier:
    """The dossier after a round in which devices held these copies, and were released noise of these levels."""
    chosen, arrived, memory = hearing.chosen, hearing.arrived, settings.reputation_memory
    current = memory * dossier.reputation[chosen] + (1.0 - memory) * ~hearing.caught
    reputation = dossier.reputation.at[chosen].set(jnp.where(arrived, current, dossier.reputation[chosen]))
    flags = dossier.caught.at[chosen].set(jnp.where(arrived, hearing.caught, dossier.caught[chosen]))
    if dossier.history is None:
        return Dossier(None, reputation, flags)
    old = dossier.history
    theirs = old.sketches[:, chosen]
    newer = jnp.concatenate([sketches(hearing.updates)[None], theirs[:-1]])
    history = History(
        levels=jnp.concatenate([levels[None], old.levels[:-1]]),
        sketches=old.sketches.at[:, chosen].set(jnp.where(arrived[None, :, None], newer, theirs)),
        copies_before=None if old.copies_before is None else copies,
    )
    return Dossier(history, reputation, flags)
