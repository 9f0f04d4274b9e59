"""Updates that cannot be honest by their values: not finite, as good as nothing, or absurdly long."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, Evidence, median_of
from fairwave.policy.rows import lengths
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice


def _impossible(settings: Defences, evidence: Evidence) -> FlagPerDevice:
    length = lengths(evidence.updates)
    finite = jnp.isfinite(length)
    usual = median_of(length, evidence.arrived & finite)
    return ~finite | (length < settings.shortest_update * usual) | (length > settings.longest_update * usual)


validation = Defence(
    name="validation",
    summary="catches updates that are not finite, a hundredth of the median length, or a hundred times",
    suspects=_impossible,
)
