"""No update counts for more than a usual one."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.base import Defence, Evidence, lengths, median_of
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.defences import Defences
from fairwave.types import UpdatePerDevice


def _clipped(settings: Defences, evidence: Evidence) -> UpdatePerDevice:
    length = lengths(evidence.updates)
    usual = jnp.nan_to_num(median_of(length, evidence.arrived), nan=jnp.inf)
    return evidence.updates * clip_factor(length, usual)[:, None].astype(evidence.updates.dtype)


norm_clipping = Defence(
    name="norm_clipping", summary="shortens updates to the median length before they are used", amends=_clipped
)
