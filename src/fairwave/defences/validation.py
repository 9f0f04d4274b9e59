"""Updates that cannot be honest by their length: as good as nothing, or absurdly long."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, median_of, refusing
from fairwave.policy.rows import lengths
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice


def _impossible(settings: Defences, updates: Updates) -> FlagPerDevice:
    length = lengths(updates.rows)
    finite = jnp.isfinite(length)
    usual = median_of(length, updates.arrived & finite)
    return ~finite | (length < settings.shortest_update * usual) | (length > settings.longest_update * usual)


validation = Defence(
    name="validation",
    summary="The access point refuses updates that are a hundred times shorter or longer than the median.",
    order=10,
    judge=refusing("validation", _impossible),
    refuses=True,
)
