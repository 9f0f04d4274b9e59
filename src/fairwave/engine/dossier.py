"""What the access point keeps about devices, because a defence makes use of it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.defences.judgement import in_use
from fairwave.learning.model import Tree, flat_rows
from fairwave.scenario.defences import Defences
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice


class History(eqx.Module):
    """Of every device, as flat vectors."""

    copy_noise: UpdatePerDevice
    """In the copy that it holds."""
    copies_before: UpdatePerDevice
    """The copy that it held in the round before."""
    last_updates: UpdatePerDevice
    """What it sent last."""


class Dossier(eqx.Module):
    """With a leading device axis."""

    history: History | None
    """None if no defence looks back."""
    reputation: PerDevice
    """From 1, falling while the device is caught."""
    caught: FlagPerDevice
    """In the last round that it took part in: what it sends is not trusted until it is not."""


def no_dossier(settings: Defences, received: Tree) -> Dossier | None:
    """Before the first round; None if there is no defence."""
    used = [defence for _, defence in in_use(settings)]
    if not used:
        return None
    copies = flat_rows(received)[0]
    blank = jnp.zeros_like(copies)
    history = History(blank, copies, blank) if any(defence.looks_back for defence in used) else None
    num_devices = copies.shape[0]
    return Dossier(history=history, reputation=jnp.ones(num_devices), caught=jnp.zeros(num_devices, bool))


def removed(settings: Defences, dossier: Dossier) -> FlagPerDevice:
    """Who is not asked any more."""
    if not any(defence.removes for _, defence in in_use(settings)):
        return jnp.zeros(dossier.reputation.shape, bool)
    return dossier.reputation < settings.reputation_threshold


def with_round(
    settings: Defences,
    dossier: Dossier,
    judged: tuple[Array, FlagPerDevice, FlagPerDevice],
    updates: UpdatePerDevice,
    copies: UpdatePerDevice,
    noise: UpdatePerDevice,
    served: FlagPerDevice,
) -> Dossier:
    """The dossier after a round: `judged` are its participants, whose update arrived, and who was caught.

    `copies` are those that devices held in the round, `noise` is in those that are served now.
    """
    chosen, arrived, caught = judged
    memory = settings.reputation_memory
    current = memory * dossier.reputation[chosen] + (1.0 - memory) * ~caught
    reputation = dossier.reputation.at[chosen].set(jnp.where(arrived, current, dossier.reputation[chosen]))
    flags = dossier.caught.at[chosen].set(jnp.where(arrived, caught, dossier.caught[chosen]))
    if dossier.history is None:
        return Dossier(None, reputation, flags)
    old = dossier.history
    last = old.last_updates.at[chosen].set(jnp.where(arrived[:, None], updates, old.last_updates[chosen]))
    return Dossier(History(jnp.where(served[:, None], noise, old.copy_noise), copies, last), reputation, flags)
