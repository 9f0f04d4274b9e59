"""Losses and gradients over all of a device's data, in chunks that bound memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fairwave.learning.model import Inputs, Labels, Model, Tree
from fairwave.types import Count, PerDevice, Scalar

CHUNK, LARGE_CHUNK = 1_000, 10_000
"""Samples at a time: what stays near a CPU, and what a GPU has room for, where every piece is launched anew."""


def chunk_of(samples: int) -> int:
    """How many of the samples are computed at a time."""
    return min(CHUNK if jax.default_backend() == "cpu" else LARGE_CHUNK, samples)


class Samples(eqx.Module):
    """One device's view of the data: the whole set, and which of it is the device's own."""

    inputs: Array
    labels: Array
    own: Int[Array, " held"]
    count: Count


ValueAndGradient: TypeAlias = tuple[Scalar, Tree]


def scaled(inputs: Array) -> Inputs:
    """Bytes and 16-bit words in [0, 1], other numbers as they are."""
    if inputs.dtype in (jnp.uint8, jnp.uint16):
        return inputs.astype(jnp.float32) * float(1.0 / np.iinfo(inputs.dtype).max)
    return inputs.astype(jnp.float32)


def mean_loss(model: Model, params: Tree, inputs: Inputs, labels: Labels) -> Scalar:
    """Mean loss of some samples as local steps lower it, penalty included."""
    return jnp.mean(model.trained_on(params, inputs, labels)) + model.penalty(params)


def local_loss(model: Model, params: Tree, samples: Samples) -> Scalar:
    """Mean loss over one device's data.

    Paper: Eq. (2).
    """
    zero = jnp.zeros((), jnp.float32)
    total: Scalar = _over_chunks(samples, zero, lambda chunk: _chunk_loss(model, params, *chunk))
    return total / samples.count.astype(jnp.float32) + model.penalty(params)


def local_gradient(model: Model, params: Tree, samples: Samples) -> ValueAndGradient:
    """Loss over one device's data and its gradient."""
    zero = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, params))
    chunk_gradient = jax.value_and_grad(lambda p, *chunk: _chunk_loss(model, p, *chunk))
    loss, gradient = _over_chunks(samples, zero, lambda chunk: chunk_gradient(params, *chunk))
    penalty, penalty_gradient = jax.value_and_grad(model.penalty)(params)
    scale = 1.0 / samples.count.astype(jnp.float32)
    return loss * scale + penalty, jax.tree.map(lambda g, p: g * scale + p, gradient, penalty_gradient)


def global_loss(losses: PerDevice, counts: Int[Array, " device"]) -> Scalar:
    """Loss over the data of all devices, each weighted by how much it holds.

    Paper: Eq. (1).
    """
    return jnp.sum(losses * counts) / jnp.sum(counts)


def _chunk_loss(model: Model, params: Tree, inputs: Inputs, labels: Labels, counts: Array) -> Scalar:
    return jnp.sum(jnp.where(counts, model.losses(params, inputs, labels), 0.0))


def _over_chunks(samples: Samples, zero: Tree, value: Callable[[tuple[Array, Array, Array]], Tree]) -> Tree:
    held = samples.own.shape[0]
    size = chunk_of(held)
    starts = jnp.arange(0, held, size)

    def add(total: Tree, start: Array) -> tuple[Tree, None]:
        place = start + jnp.arange(size)
        members = samples.own[jnp.minimum(place, held - 1)]
        chunk = (scaled(samples.inputs[members]), samples.labels[members], place < samples.count)
        return jax.tree.map(jnp.add, total, value(chunk)), None

    return jax.lax.scan(add, zero, starts)[0]
