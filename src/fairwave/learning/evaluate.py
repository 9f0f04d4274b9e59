"""How good a model is on data it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.learning.loss import chunk_of, scaled
from fairwave.learning.model import Inputs, Model, Tree
from fairwave.types import Scalar


def accuracy(model: Model, params: Tree, inputs: Array, labels: Array) -> Scalar:
    """Share of samples whose most likely class is the right one; NaN for a model without classes."""
    logits = model.logits
    if logits is None:
        return jnp.full((), jnp.nan, jnp.float32)
    hits = _total(inputs, labels, int, lambda some, right: jnp.argmax(logits(params, some), axis=1) == right)
    return hits.astype(jnp.float32) / labels.shape[0]


def root_mean_squared_error(model: Model, params: Tree, inputs: Array, labels: Array) -> Scalar:
    """Root mean squared error of the predicted numbers, in the labels' unit; NaN for a model of classes."""
    numbers = model.numbers
    if numbers is None:
        return jnp.full((), jnp.nan, jnp.float32)
    total = _total(inputs, labels, float, lambda some, right: (numbers(params, some) - right).astype(float) ** 2)
    return jnp.sqrt(total / labels.shape[0]).astype(jnp.float32)


def _total(inputs: Array, labels: Array, kind: type, value: Callable[[Inputs, Array], Array]) -> Array:
    """Sum of a value of every sample, in chunks that bound memory."""
    size = chunk_of(labels.shape[0])

    def add(total: Array, start: Array) -> tuple[Array, None]:
        place = start + jnp.arange(size)
        members = jnp.minimum(place, labels.shape[0] - 1)
        values = value(scaled(inputs[members]), labels[members])
        return total + jnp.sum(jnp.where(place < labels.shape[0], values, 0)).astype(total.dtype), None

    starts = jnp.arange(0, labels.shape[0], size)
    return jax.lax.scan(add, jnp.zeros((), kind), starts)[0]


def sample_losses(model: Model, params: Tree, inputs: Array, labels: Array) -> Float[Array, " sample"]:
    """The loss of each sample."""
    size = chunk_of(labels.shape[0])
    starts = jnp.arange(0, labels.shape[0], size)

    def some(start: Array) -> Array:
        members = jnp.minimum(start + jnp.arange(size), labels.shape[0] - 1)
        return model.losses(params, scaled(inputs[members]), labels[members])

    losses: Array = jax.lax.map(some, starts)
    return losses.reshape(-1)[: labels.shape[0]]
