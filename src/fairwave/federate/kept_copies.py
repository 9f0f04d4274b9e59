"""Which devices' copies of the model a federation's checkpoint has to hold.

At the end of a round every device that did not take part gets a new copy, and a federation sends a copy only when its
device is asked. So the copy of a device that sits out the next round, and is served at its end, is replaced before
anybody sees it: the checkpoint holds zeros for it, which are stored once. Where `cell.participants` are few among many
devices, that is most of them.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fairwave.double_precision import double_precision
from fairwave.engine.model_copies import StoredCopies
from fairwave.engine.server import AccessPoint
from fairwave.engine.state import ServerState


@double_precision()
def with_needed_copies(point: AccessPoint, server: ServerState, next_round: int) -> ServerState:
    """The state that the next round goes on from, with zeros for copies that nothing will look at."""
    copies, history = server.copies, server.device_history
    looks_back = history is not None and history.recent is not None and history.recent.copies_before is not None
    if not isinstance(copies, StoredCopies) or point.rules.scheme.reward is not None or looks_back:
        return server  # rewards, and defences that look at changes of copies, read those of everybody
    invitation = point.invite(server, jnp.asarray(next_round))
    needed = invitation.participating | ~invitation.reachable

    def one(leaf: jax.Array) -> jax.Array:
        return jnp.where(needed.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, jnp.zeros((), leaf.dtype))

    return dataclasses.replace(server, copies=StoredCopies(jax.tree.map(one, copies.models)))
