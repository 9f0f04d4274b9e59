"""No update counts for much more than a usual one.

Long updates are shortened rather than refused: a device with a noisy copy has them, and would never get a better one.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, changing, median_of
from fairwave.policy.rows import lengths
from fairwave.policy.updates import Updates
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import UpdatePerDevice


def _clipped(settings: Defences, updates: Updates) -> UpdatePerDevice:
    length = lengths(updates.rows)
    usual = jnp.nan_to_num(median_of(length, updates.arrived), nan=jnp.inf)
    return updates.rows * clip_factor(length, settings.clipping_ratio * usual)[:, None].astype(updates.rows.dtype)


norm_clipping = Defence(
    name="norm_clipping",
    summary="The access point shortens long updates to twice the median length before they are used.",
    order=130,
    judge=changing(_clipped),
)
