"""An update that helps nobody is no contribution: the access point tries each on data of its own."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, Evidence, median_of
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice


def _useless(settings: Defences, evidence: Evidence) -> FlagPerDevice:
    """Where updates usually help; late in training even honest ones may not."""
    usual = median_of(evidence.gain, evidence.arrived)
    return (usual > 0.0) & ~(evidence.gain > settings.useful_share * usual) & jnp.isfinite(usual)


held_out = Defence(
    name="held_out",
    summary="catches updates that lower the loss on the access point's own samples far less than others do",
    suspects=_useless,
    needs_samples=True,
)
