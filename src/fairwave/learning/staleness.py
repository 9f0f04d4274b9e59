"""How much an update counts that comes after its round."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def staleness_weight(age: Int[Array, "*late"], decay: float) -> Float[Array, "*late"]:
    """The factor (1 + age) ** -decay by which an update is scaled that is `age` rounds old; 1 for one that is in time.

    Not from the paper, whose rounds end with the deadline. FedBuff (Nguyen et al., AISTATS 2022) scales late updates
    so, with a decay of 1/2, and divides by their number, not by the sum of the weights.
    """
    return jnp.power(1.0 + age, -decay)
