"""A device that adds noise of its own to what it sends, to hide how little that is."""

from __future__ import annotations

import jax

from fairwave.adversaries.behaviour import Behaviour, DeviceKnowledge, of_length
from fairwave.types import Params


def _more(known: DeviceKnowledge) -> Params:
    drawn = jax.random.normal(known.key, known.honest.shape, known.honest.dtype)
    return known.honest + of_length(drawn, known.strength * known.usual_length)


adds_noise = Behaviour(
    name="adds_noise",
    summary="The device adds noise to its update, at strength times the usual length of its updates.",
    strength=1.0,
    replace_update=_more,
)
