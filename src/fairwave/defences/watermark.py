"""The noise in a copy is known to the access point and to nobody else: whoever sends it back has echoed the copy."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.defences.defence import Defence, knowledge_of, refusing
from fairwave.policy.rows import cosines
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice

CHANCE = 6.0
"""Standard deviations of a cosine by chance, which is large in a small model."""


def _echoes(settings: Defences, updates: Updates) -> FlagPerDevice:
    """Along the noise, not against it: honest training takes some of it off."""
    carried = jax.vmap(lambda noise: cosines(updates.rows, noise))(knowledge_of(updates).copy_noise)
    by_chance = CHANCE / updates.rows.shape[1] ** 0.5
    caught: FlagPerDevice = jnp.max(carried, axis=0) > max(settings.watermark_threshold, by_chance)
    return caught


watermark = Defence(
    name="watermark",
    summary="The access point refuses updates that carry the noise of one of the last three copies that their "
    "device received.",
    order=20,
    judge=refusing("watermark", _echoes),
    refuses=True,
    looks_back=True,
    finds_copy_noise=True,
)
