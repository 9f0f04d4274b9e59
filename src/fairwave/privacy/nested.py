"""Noise for many recipients of one vector that no coalition can average away within a round.

Sort the recipients by noise level; each next one's noise is the one before plus an independent increment, as in a
Brownian motion stopped at different times. Every recipient's own noise is what it would have been, and any coalition's
copies are its least-noisy member's copy plus noise that has nothing to do with the vector: it learns what that member
knows, and no more. That holds for the copies of one vector, of one round. Over rounds, members who take turns at being
least noisy know more together than each of them: per round what the least noisy knows, which the accounts add up.
This is the corner-wave covariance of Li, Chen, Li and Zhang (TKDE 2012) and the diffusion of
Koufogiannis and Pappas (arXiv:1511.06253), applied to copies of a model.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.types import PerDevice, UpdatePerDevice


def nested(noise_std: PerDevice, draws: UpdatePerDevice) -> UpdatePerDevice:
    """Nested noise per unit of each recipient's std, from independent standard normal draws, one row per recipient.

    Covariance of recipients i and j, once multiplied by their stds: min(std_i, std_j)^2. Equal stds get equal noise.
    The stds must not depend on the draws.
    """
    order = jnp.argsort(noise_std)
    rising = noise_std[order]
    # Differences of squares as products: equal stds give exactly 0, and no rounding below it.
    below = jnp.concatenate([jnp.zeros_like(rising[:1]), rising[:-1]])
    step = jnp.sqrt((rising - below) * (rising + below)).astype(draws.dtype)
    # Row i of the draws is the increment of the recipient with rank i.
    chain = jnp.cumsum(step[:, None] * draws, axis=0)
    safe = jnp.where(rising > 0.0, rising, 1.0).astype(draws.dtype)
    return jnp.zeros_like(draws).at[order].set(chain / safe[:, None])
