"""A little is enough: attackers move every value as far as honest ones hide them (Baruch et al., NeurIPS 2019).

Mean and standard deviation are those of the updates that the attackers' own training gave.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import ndtri

from fairwave.adversaries.behaviour import Behaviour, CoalitionKnowledge, sent_by_all
from fairwave.types import Count, Scalar, UpdatePerDevice


def hidden_deviations(num_devices: Count, num_attackers: int) -> Scalar:
    """Standard deviations z by which values can be moved so that enough honest devices still lie farther out.

    With n devices and m attackers, s = floor(n / 2 + 1) - m honest ones make a majority together with the attackers,
    and z is the quantile of the standard normal law at (n - m - s) / (n - m). Where s is more than half of the honest
    devices, z would be negative and is 0: nothing can be hidden among so few. At least one honest device lies farther
    out.
    """
    honest = jnp.maximum(num_devices - num_attackers, 1)
    farther = jnp.maximum(num_devices // 2 + 1 - num_attackers, 1)
    return ndtri(jnp.maximum((honest - farther) / honest, 0.5))


def _hidden(known: CoalitionKnowledge) -> UpdatePerDevice:
    deviations = known.strength * hidden_deviations(known.num_devices, known.honest.shape[0])
    return sent_by_all(jnp.mean(known.honest, axis=0) - deviations * jnp.std(known.honest, axis=0), known)


alie = Behaviour(
    name="alie",
    summary="A coalition moves its mean update by strength times the spread that hides among honest devices (ALIE).",
    replace_together=_hidden,
)
