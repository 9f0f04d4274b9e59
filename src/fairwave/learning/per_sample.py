"""Sums of per-sample gradients, each scaled by what its length calls for.

For dense layers nothing per sample is stored: a sample's gradient by a layer's weights is the outer product of the
layer's input and the gradient by its output, so that its length is the product of theirs, and the scaled sum is one
matrix product. Any other model is differentiated sample by sample, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairwave.learning.model import Inputs, Labels, Model, Taps, Tree

CHUNK = 32
"""Per-sample gradients held at a time where they have to be: 14 MB for the paper's network."""
Lengths: TypeAlias = Float[Array, " sample"]
Factor: TypeAlias = Callable[[Lengths], Lengths]
"""From the length of a sample's gradient to what it is multiplied by; 0 drops the sample, whatever it holds."""


def scaled_sum(
    model: Model, params: Tree, inputs: Inputs, labels: Labels, counted: Bool[Array, " sample"], factor: Factor
) -> Tree:
    """Sum over the counted samples of each one's own gradient times its factor; the model's penalty is left out."""

    def weights(lengths: Lengths) -> Lengths:
        return jnp.where(counted, factor(lengths), 0.0).astype(lengths.dtype)

    if model.taps is not None:
        return _by_layer(model.taps(params, inputs, labels), weights)
    return _by_sample(model, params, inputs, labels, counted, factor)


def _by_layer(taps: Taps, weights: Factor) -> Tree:
    """From each dense layer's inputs and the samples' gradients by its outputs."""
    squares = [(_squared(seen) + 1.0) * _squared(slope) for seen, slope in taps]
    weight = weights(jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0)))[:, None]
    kept = [(jnp.where(weight > 0.0, seen, 0.0), jnp.where(weight > 0.0, weight * slope, 0.0)) for seen, slope in taps]
    # In full precision on every machine: the sum must be what the lengths have promised.
    exactly = jax.lax.Precision.HIGHEST
    return [
        {"weight": jnp.matmul(seen.T, slope, precision=exactly), "bias": jnp.sum(slope, axis=0)} for seen, slope in kept
    ]


def _by_sample(
    model: Model, params: Tree, inputs: Inputs, labels: Labels, counted: Bool[Array, " sample"], factor: Factor
) -> Tree:
    def own_gradient(one_input: Array, label: Array) -> Tree:
        # A batch of one: whatever a model does across its batch, no sample can reach another's gradient.
        return jax.grad(lambda p: model.losses(p, one_input[None], label[None])[0])(params)

    def add(total: Tree, chunk: tuple[Array, ...]) -> tuple[Tree, None]:
        some_inputs, some_labels, some_counted = chunk
        gradients = jax.vmap(own_gradient)(some_inputs, some_labels)
        squares = [_squared(leaf.reshape(leaf.shape[0], -1)) for leaf in jax.tree.leaves(gradients)]
        lengths = jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))
        weight = jnp.where(some_counted, factor(lengths), 0.0).astype(lengths.dtype)

        def of_leaf(sum_so_far: Array, leaf: Array) -> Array:
            each = weight.reshape(-1, *[1] * (leaf.ndim - 1))
            return sum_so_far + jnp.sum(jnp.where(each > 0.0, each * leaf, 0.0), axis=0)

        return jax.tree.map(of_leaf, total, gradients), None

    size = min(CHUNK, counted.shape[0])
    spare = -counted.shape[0] % size
    padded = [jnp.pad(each, [(0, spare)] + [(0, 0)] * (each.ndim - 1)) for each in (inputs, labels, counted)]
    chunks = tuple(each.reshape(-1, size, *each.shape[1:]) for each in padded)
    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), chunks)[0]


def _squared(rows: Float[Array, "sample value"]) -> Lengths:
    return jnp.sum(rows * rows, axis=1)
