"""Direction alone cannot tell little work from much: an update that is short for its round counts for less."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, crediting, median_of
from fairwave.policy.rows import lengths
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import PerDevice


def _credit(settings: Defences, updates: Updates) -> PerDevice:
    """Length over the median, at most 1; what noise of training adds to a squared length is taken off."""
    squared = lengths(updates.rows) ** 2 - updates.rows.shape[1] * updates.reported_noise_std**2
    length = jnp.sqrt(jnp.maximum(squared, 0.0))
    usual = median_of(length, updates.arrived)
    return jnp.where(usual > 0.0, jnp.minimum(1.0, length / jnp.where(usual > 0.0, usual, 1.0)), 1.0)


length_credit = Defence(
    name="length_credit",
    summary="The access point lowers the score of updates that are shorter than the median, because the direction "
    "alone does not show how much work was done.",
    order=120,
    judge=crediting(_credit),
)
