"""How good a model is on data it has not seen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.learning.loss import CHUNK, scaled
from fairwave.learning.model import Model, Tree
from fairwave.types import Scalar


def accuracy(model: Model, params: Tree, inputs: Array, labels: Array) -> Scalar:
    """Share of samples whose most likely class is the right one; NaN for a model without classes."""
    logits = model.logits
    if logits is None:
        return jnp.full((), jnp.nan, jnp.float32)
    size = min(CHUNK, labels.shape[0])

    def hits(count: Array, start: Array) -> tuple[Array, None]:
        place = start + jnp.arange(size)
        members = jnp.minimum(place, labels.shape[0] - 1)
        guess = jnp.argmax(logits(params, scaled(inputs[members])), axis=1)
        right = (guess == labels[members]) & (place < labels.shape[0])
        return count + jnp.sum(right), None

    starts = jnp.arange(0, labels.shape[0], size)
    right, _ = jax.lax.scan(hits, jnp.zeros((), starts.dtype), starts)
    return right.astype(jnp.float32) / labels.shape[0]


def sample_losses(model: Model, params: Tree, inputs: Array, labels: Array) -> Float[Array, " sample"]:
    """The loss of each sample."""
    size = min(CHUNK, labels.shape[0])
    starts = jnp.arange(0, labels.shape[0], size)

    def some(start: Array) -> Array:
        members = jnp.minimum(start + jnp.arange(size), labels.shape[0] - 1)
        return model.losses(params, scaled(inputs[members]), labels[members])

    losses: Array = jax.lax.map(some, starts)
    return losses.reshape(-1)[: labels.shape[0]]
