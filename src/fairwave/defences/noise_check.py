"""A device says how much noise its training has; its update shows how much that can be at most."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, Evidence
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import PerDevice

NORMAL_OVER_MAD = 1.4826
"""Std of a normal variable over the median of its absolute value."""
ENOUGH = 8_192
"""Values of an update that are looked at: the median is then right to about 1 %."""


def _at_most(settings: Defences, evidence: Evidence) -> PerDevice:
    """Noise is in every value of an update, learning mostly in few: half of all values are no larger than noise."""
    some = evidence.updates[:, :: max(1, evidence.updates.shape[1] // ENOUGH)]
    shown = NORMAL_OVER_MAD * jnp.median(jnp.abs(some), axis=1)
    return jnp.minimum(evidence.told_noise_std, shown)


noise_check = Defence(
    name="noise_check",
    summary="believes no more training noise than an update shows; told too large, it would flatter its device",
    believes=_at_most,
)
