"""The noise of a round's release: drawn for the copies, and drawn again to look for it in what devices send."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.defences.defence import PAST
from fairwave.engine.model_copies import copy_noise
from fairwave.engine.scoring import Practice
from fairwave.engine.state import Books
from fairwave.learning.model import flat_rows
from fairwave.privacy.nested import nested
from fairwave.types import Count, Key, PerDevice, UpdatePerDevice


def is_broadcast(practice: Practice) -> bool:
    """Whether everybody's copy is the same."""
    return practice.scheme.same_for_all and practice.privacy.broadcast


def drawn_noise(practice: Practice, levels: PerDevice, root: Key, number: Count, size: int) -> UpdatePerDevice:
    """Standard noise of every device's copy in a round, as its address and the levels of all have it."""
    devices = jnp.arange(levels.size)
    noise = jax.vmap(lambda index: copy_noise(root, number, index, size))(
        jnp.zeros_like(devices) if is_broadcast(practice) else devices
    )
    return nested(levels, noise) if practice.privacy.copies == "nested" else noise


def past_noise(practice: Practice, state: Books, root: Key, number: Count) -> Float[Array, "past device param"] | None:
    """Noise in the latest copies, the newest first; None if no defence looks for it."""
    if state.dossier is None or state.dossier.history is None:
        return None
    size = jax.eval_shape(lambda tree: flat_rows(tree)[0], state.received).shape[1]

    def one(lag: Count, levels: PerDevice) -> UpdatePerDevice:
        return levels[:, None] * drawn_noise(practice, levels, root, number - 1 - lag, size)

    return jax.vmap(one)(jnp.arange(PAST), state.dossier.history.levels).astype(jnp.float32)
