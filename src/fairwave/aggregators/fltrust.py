"""FLTrust: updates count by how far they agree with the access point's own (Cao, Fang, Liu, Gong, NDSS 2021)."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, weighted_mean
from fairwave.policy.rows import cosines, lengths
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, UpdatePerDevice


def _trusted(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """The mean of the updates at the reference's length, weighted by their cosine with it where that is positive."""
    reference, length = own.reference[None, :], lengths(rows)
    usable = arrived & jnp.isfinite(length) & (length > 0.0)
    directions = jnp.where(usable[:, None], rows / jnp.where(usable, length, 1.0)[:, None], 0.0)
    trust = jnp.maximum(cosines(directions, reference), 0.0)
    return weighted_mean(lengths(reference)[:, None] * directions, trust)


fltrust = Aggregator(
    name="fltrust",
    summary="Updates get the length of the access point's own, and their cosine with it as weight (Cao et al., "
    "NDSS 2021).",
    step=_trusted,
    needs_server_data=True,
)
