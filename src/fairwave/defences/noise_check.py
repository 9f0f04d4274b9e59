"""A device reports how much noise its training has; its update shows how much that can be at most."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from fairwave.defences.defence import Defence, Verdict
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences

NORMAL_OVER_MAD = 1.4826
"""Std of a normal variable over the median of its absolute value."""
ENOUGH = 8_192
"""Values of an update that are looked at: the median is then right to about 1 %."""


def _at_most(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
    """Noise is in every value of an update, learning mostly in few: half of all values are no larger than noise."""
    some = updates.rows[:, :: max(1, updates.rows.shape[1] // ENOUGH)]
    shown = NORMAL_OVER_MAD * jnp.median(jnp.abs(some), axis=1)
    believed = jnp.minimum(updates.reported_noise_std, shown)
    return dataclasses.replace(updates, reported_noise_std=believed), verdict


noise_check = Defence(
    name="noise_check",
    summary="The access point limits the training noise that a device reports to what its update shows, because a "
    "larger value would raise its score.",
    order=110,
    judge=_at_most,
)
