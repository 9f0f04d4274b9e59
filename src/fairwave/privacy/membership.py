"""Membership inference by loss: how far a model's losses give away which samples it was trained on.

A measurement of one weak attack: a value near 0.5 proves nothing.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.types import Scalar


def loss_attack_auc(member_losses: Float[Array, " member"], other_losses: Float[Array, " other"]) -> Scalar:
    """Probability that a random member has a smaller loss than a random other sample, ties counted half."""
    ordered = jnp.sort(other_losses)
    # Unrolled, each search is one kernel on a GPU, and not one per halving.
    below, up_to = (
        jnp.searchsorted(ordered, member_losses, side=side, method="scan_unrolled") for side in ("left", "right")
    )
    return jnp.mean(1.0 - 0.5 * (below + up_to) / other_losses.shape[0])
