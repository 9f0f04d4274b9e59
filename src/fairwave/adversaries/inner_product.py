"""Inner-product manipulation: attackers send a short update against the mean (Xie, Koyejo, Gupta, UAI 2019).

The aggregate then points away from where honest devices go, although no update stands out by its length. The mean is
that of the updates that the attackers' own training gave.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.adversaries.behaviour import Behaviour, CoalitionKnowledge, sent_by_all
from fairwave.types import UpdatePerDevice


def _against(known: CoalitionKnowledge) -> UpdatePerDevice:
    return sent_by_all(-known.strength * jnp.mean(known.honest, axis=0), known)


inner_product = Behaviour(
    name="inner_product",
    summary="A coalition sends minus strength times its mean update (IPM).",
    strength=0.5,
    replace_together=_against,
)
