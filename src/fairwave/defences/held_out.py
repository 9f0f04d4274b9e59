"""An update that helps nobody is no contribution: the access point tries each on data of its own."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.defences.defence import Defence, median_of, refusing
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice


def _useless(settings: Defences, updates: Updates) -> FlagPerDevice:
    """Where updates usually help; late in training even honest ones may not."""
    usual = median_of(updates.gain, updates.arrived)
    return (usual > 0.0) & ~(updates.gain > settings.useful_share * usual) & jnp.isfinite(usual)


held_out = Defence(
    name="held_out",
    summary="The access point refuses updates that lower the loss on the access point's own samples far less than "
    "others do.",
    order=40,
    judge=refusing("held_out", _useless),
    refuses=True,
    needs_server_data=True,
)
