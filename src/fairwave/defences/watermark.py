"""The noise in a copy is known to the access point and to nobody else: whoever sends it back has echoed the copy."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.base import Defence, Evidence, cosine
from fairwave.scenario.defences import Defences
from fairwave.types import FlagPerDevice


def _echoes(settings: Defences, evidence: Evidence) -> FlagPerDevice:
    return jnp.abs(cosine(evidence.updates, evidence.copy_noise)) > settings.watermark_threshold


watermark = Defence(
    name="watermark",
    summary="catches updates that carry the noise of the copy that their device received",
    suspects=_echoes,
    looks_back=True,
)
