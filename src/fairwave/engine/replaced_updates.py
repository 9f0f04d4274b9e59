"""What misbehaving devices send instead of their updates, each by itself or a coalition together."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fairwave.adversaries.behaviour import CoalitionKnowledge, DeviceKnowledge, ReplaceTogether, ReplaceUpdate
from fairwave.engine.active_behaviour import Active
from fairwave.engine.behaviour_history import BehaviourHistory
from fairwave.engine.devices import Participants
from fairwave.keys import Stream, device_key
from fairwave.learning.model import Tree, flat_rows
from fairwave.types import UpdatePerDevice


def replaced(
    acting: Sequence[Active], honest: Tree, participants: Participants, history: BehaviourHistory, sends: np.ndarray
) -> Tree:
    """What participants send: their updates, or what a behaviour makes of what its devices know.

    A device of several entries passes through them in their order. `sends` is a mask over all devices of those that
    send anything in the round.
    """
    if all(each.behaviour.replace_update is None and each.behaviour.replace_together is None for each in acting):
        return honest
    flat, unravel = flat_rows(honest)
    known = _known(flat, participants, history)
    sending = sends[np.asarray(participants.own.index)]
    for each in acting:
        mask = each.mask[np.asarray(participants.own.index)]
        if each.behaviour.replace_update is not None:
            known = dataclasses.replace(known, honest=flat, strength=jnp.full_like(known.strength, each.strength))
            instead = _sent_instead(each.behaviour.replace_update, known)
            flat = jnp.where(jnp.asarray(mask)[:, None], instead, flat)
        members = np.flatnonzero(mask & sending)
        if each.behaviour.replace_together is not None and members.size:
            pooled = CoalitionKnowledge(  # the rows of its members, and of nobody else
                honest=flat[members],
                num_devices=jnp.asarray(int(sending.sum())),
                strength=jnp.asarray(each.strength),
                keys=known.key[members],
            )
            flat = flat.at[members].set(_sent_together(each.behaviour.replace_together, pooled))
    return jax.vmap(unravel)(flat)


def _known(flat: UpdatePerDevice, participants: Participants, history: BehaviourHistory) -> DeviceKnowledge:
    """What each participant knows by itself, with a leading participant axis."""
    chosen, shared = participants.own.index, participants.shared
    past = (history.received, history.sent, history.first_received, history.first_sent)
    before, sent, first, sent_first = (flat_rows(tree)[0][chosen] for tree in past)
    own_length = jnp.sqrt(jnp.sum(flat**2, axis=1))
    return DeviceKnowledge(
        received=flat_rows(participants.own.copy)[0],
        received_before=before,
        honest=flat,
        sent_before=sent,
        received_first=first,
        sent_first=sent_first,
        usual_length=jnp.where(history.usual_length[chosen] > 0.0, history.usual_length[chosen], own_length),
        strength=jnp.ones(chosen.shape),
        round_index=jnp.broadcast_to(shared.round_index, chosen.shape),
        key=jax.vmap(lambda index: device_key(shared.root, shared.round_index, Stream.ADVERSARY, index))(chosen),
    )


@functools.partial(jax.jit, static_argnums=0)
def _sent_instead(replace_update: ReplaceUpdate, known: DeviceKnowledge) -> Float[Array, "participant param"]:
    instead: Array = jax.vmap(replace_update)(known)
    return instead


@functools.partial(jax.jit, static_argnums=0)
def _sent_together(replace_together: ReplaceTogether, pooled: CoalitionKnowledge) -> Float[Array, "member param"]:
    return replace_together(pooled)
