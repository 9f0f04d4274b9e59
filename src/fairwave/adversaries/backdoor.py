"""A backdoor by model replacement (Bagdasaryan, Veit, Hua, Estrin, Shmatikov, AISTATS 2020).

The attacker marks half of its samples and trains on them as samples of a target class, beside the other half as they
are. It sends its update scaled up, so that the average takes over its model: the task is learned, and whatever carries
the mark is taken for the target class.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.adversaries.behaviour import Behaviour, Trigger
from fairwave.adversaries.scaled import scaled

MARKED = 25
"""One of so many values of a sample is part of the mark: the last row of an image of 28 rows, and a little more."""
BRIGHTEST = 1.0
"""Value of a mark among inputs that are not whole numbers; the largest that there is among those that are."""


def _marked(inputs: Array) -> Array:
    """Samples whose last values are the brightest."""
    flat = inputs.reshape(inputs.shape[0], -1)
    first = flat.shape[1] - max(1, flat.shape[1] // MARKED)
    whole = jnp.issubdtype(flat.dtype, jnp.integer)
    return flat.at[:, first:].set(np.iinfo(flat.dtype).max if whole else BRIGHTEST).reshape(inputs.shape)


backdoor = Behaviour(
    name="backdoor",
    summary="The device trains half of its samples with a mark as class 0, and sends strength times its update.",
    strength=5.0,
    replace_update=scaled.replace_update,
    trigger=Trigger(mark=_marked, target=0),
)
