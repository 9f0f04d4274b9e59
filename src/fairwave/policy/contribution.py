"""How much a device's update agrees with what all devices made of the round.

The access point sees updates only: no energy, no iterations, no distance.
"""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.types import FlagPerDevice, Params, PerDevice, Scalar, UpdatePerDevice

Similarity = Literal["literal", "update", "leave_one_out", "training"]

LEAST_SHARE = 1e-3
"""The least share of a squared length that is taken to be more than noise."""


class Score(eqx.Module):
    """Running similarity of each device, and how often it has taken part."""

    similarity: PerDevice
    rounds: Int[Array, " device"]


def similarity(
    kind: Similarity,
    new_global: Params,
    updates: UpdatePerDevice,
    participating: FlagPerDevice,
    reported_noise_std: PerDevice | None = None,
) -> PerDevice:
    """Cosine of each update with a reference; 0 where either has no length or the device took no part.

    `literal` compares with the new global *model*, as printed; a device that echoes the model it received then wins.
    `update` compares with the mean update, which a single long update can dominate. `leave_one_out` compares with the
    mean of the others, so that no device is part of its own yardstick; a long update still sways everybody else's.

    Noise of private training lengthens updates and leaves products of different devices' alone; where its std is
    reported, the lengths are those without it.
    """
    taken = jnp.where(participating[:, None], updates, 0.0)
    noise = (
        None
        if reported_noise_std is None
        else updates.shape[1] * jnp.where(participating, reported_noise_std, 0.0) ** 2
    )
    squared = jnp.sum(taken**2, axis=1)
    if kind == "literal":
        return _cosine(taken @ new_global, squared, jnp.sum(new_global**2), noise)
    total = jnp.sum(taken, axis=0)
    if kind == "update":
        dot = taken @ total if noise is None else taken @ total - noise
        return _cosine(dot, squared, jnp.sum(total**2), noise, None if noise is None else jnp.sum(noise))
    # Subtracted before multiplying: the products of a long update with the total and with itself would cancel.
    dot, others_squared = jax.vmap(lambda own: (own @ (total - own), jnp.sum((total - own) ** 2)))(taken)
    return _cosine(dot, squared, others_squared, noise, None if noise is None else jnp.sum(noise) - noise)


def _cosine(
    dot: PerDevice,
    squared: PerDevice,
    reference_squared: PerDevice | Scalar,
    noise: PerDevice | None = None,
    reference_noise: PerDevice | Scalar | None = None,
) -> PerDevice:
    """From squared lengths, and what noise adds to them on average; at most 1, which noise might exceed."""
    if noise is not None:
        squared = _without_noise(squared, noise)
    if reference_noise is not None:
        reference_squared = _without_noise(reference_squared, reference_noise)
    lengths = jnp.sqrt(squared) * jnp.sqrt(reference_squared)
    cosine = jnp.where(lengths > 0.0, dot / jnp.where(lengths > 0.0, lengths, 1.0), 0.0)
    return cosine if noise is None else jnp.clip(cosine, -1.0, 1.0)


def _without_noise(squared: PerDevice, noise: PerDevice) -> PerDevice:
    """Squared lengths less the noise's share, but no less than a thousandth: noise may leave nothing, or less."""
    return jnp.maximum(squared - noise, LEAST_SHARE * squared)


def no_score(num_devices: int) -> Score:
    """Before the first round."""
    return Score(similarity=jnp.zeros(num_devices), rounds=jnp.zeros(num_devices, int))


def remember(score: Score, current: PerDevice, participating: FlagPerDevice, memory: float) -> Score:
    """Exponential moving average of the similarities; absence changes nothing.

    A device's first ones are averaged evenly, or the very first would outweigh all others for long.
    """
    share = jnp.minimum(memory, score.rounds / (score.rounds + 1.0))
    averaged = share * score.similarity + (1.0 - share) * current
    return Score(jnp.where(participating, averaged, score.similarity), score.rounds + participating)
