"""Fresh batches never give the same update twice."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.base import Defence, Evidence, cosine, lengths, median_of
from fairwave.scenario.defences import Defences
from fairwave.types import FlagPerDevice


def _replays(settings: Defences, evidence: Evidence) -> FlagPerDevice:
    """Much nearer to its own last update than devices usually are, so that no constant has to fit all of training."""
    apart = 1.0 - cosine(evidence.updates, evidence.last_updates)
    known = evidence.arrived & (lengths(evidence.last_updates) > 0.0)
    return known & (apart < settings.replay_ratio * median_of(jnp.abs(apart), known))


replay_check = Defence(
    name="replay_check", summary="catches updates that repeat their device's last one", suspects=_replays,
    looks_back=True,
)  # fmt: skip
