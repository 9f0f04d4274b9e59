"""Fresh batches never give the same update twice."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.defences.defence import Defence, knowledge_of, median_of, refusing, sketches
from fairwave.policy.rows import cosines, lengths
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice


def _replays(settings: Defences, updates: Updates) -> FlagPerDevice:
    """Much nearer to one of its own than devices usually are, so that no constant has to fit all of training."""
    now = sketches(updates.rows)
    apart = jax.vmap(lambda then: 1.0 - cosines(now, then))(knowledge_of(updates).last_sketches)
    known = jax.vmap(lengths)(knowledge_of(updates).last_sketches) > 0.0
    nearest = jnp.min(jnp.where(known, apart, jnp.inf), axis=0)
    judged = updates.arrived & jnp.any(known, axis=0)
    return judged & (nearest < settings.replay_ratio * median_of(jnp.abs(nearest), judged))


replay_check = Defence(
    name="replay_check",
    summary="The access point refuses updates that repeat one of their device's last three.",
    order=30,
    judge=refusing("replay_check", _replays),
    refuses=True,
    looks_back=True,
)
