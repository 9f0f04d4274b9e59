"""Sums of per-sample gradients, each scaled by what its length calls for.

For dense layers nothing per sample is stored: a sample's gradient by a layer's weights is the outer product of the
layer's input and the gradient by its output, so that its length is the product of theirs, and the scaled sum is one
matrix product. Any other model is differentiated sample by sample, a few at a time.

Whoever sends the parameters chooses how large activations and how small slopes are. In single precision the square of
a slope below 1e-19 is zero, and a long gradient would pass for one of length zero. So lengths, scaled gradients and
sums are in double precision, where no square of a single-precision number vanishes or overflows; and what is added up
is measured once more: whatever is longer than the bound counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fairwave.learning.model import Inputs, Labels, Model, Taps, Tree

CHUNK = 32
"""Per-sample gradients held at a time where they have to be: 14 MB for the paper's network."""
Lengths: TypeAlias = Float[Array, " sample"]
Factor: TypeAlias = Callable[[Lengths], Lengths]
"""From the length of a sample's gradient to what it is multiplied by; 0 drops the sample, whatever it holds."""
SMALLEST = float(np.finfo(np.float32).tiny)
"""Smaller slopes are zero to some machines and not to others, and an input may be 1e38: they are made zero at once."""


def scaled_sum(
    model: Model,
    params: Tree,
    inputs: Inputs,
    labels: Labels,
    counted: Bool[Array, " sample"],
    *,
    factor: Factor,
    bound: float,
) -> Tree:
    """Sum over the counted samples of each one's own gradient times its factor, in double precision.

    No sample adds more than the bound, whatever the factor. The model's penalty is left out.
    """
    if jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        raise ValueError("sums of clipped gradients need double precision: call this within double_precision()")

    if model.taps is not None:
        return _by_layer(_computed_once(model.taps(params, inputs, labels)), counted, factor, bound)
    return _by_sample(model, params, inputs, labels, counted, factor, bound)


def _by_layer(taps: Taps, counted: Bool[Array, " sample"], factor: Factor, bound: float) -> Tree:
    """From each dense layer's inputs and the samples' gradients by its outputs."""
    slopes = [_in_double(slope) for _, slope in taps]
    inputs = [seen.astype(jnp.float64) for seen, _ in taps]
    inputs_squared = [_squared(seen) + 1.0 for seen in inputs]  # a bias is an input that is always 1

    def length(of_slopes: list[Array]) -> Lengths:
        squares = [seen * _squared(slope) for seen, slope in zip(inputs_squared, of_slopes, strict=True)]
        return jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))

    weight = jnp.where(counted, factor(length(slopes)), 0.0)[:, None]
    kept = [jnp.where(weight > 0.0, weight * slope, 0.0) for slope in slopes]
    usable = (weight > 0.0) & (length(kept) <= bound)[:, None]
    kept = [jnp.where(usable, slope, 0.0) for slope in kept]
    return [
        {"weight": jnp.where(usable, seen, 0.0).T @ slope, "bias": jnp.sum(slope, axis=0)}
        for seen, slope in zip(inputs, kept, strict=True)
    ]


def _by_sample(
    model: Model,
    params: Tree,
    inputs: Inputs,
    labels: Labels,
    counted: Bool[Array, " sample"],
    factor: Factor,
    bound: float,
) -> Tree:
    def own_gradient(one_input: Array, label: Array) -> Tree:
        # A batch of one: whatever a model does across its batch, no sample can reach another's gradient.
        return jax.grad(lambda p: model.trained_on(p, one_input[None], label[None])[0])(params)

    def lengths(leaves: list[Array]) -> Lengths:
        return jnp.sqrt(jnp.sum(jnp.stack([_squared(leaf.reshape(leaf.shape[0], -1)) for leaf in leaves]), axis=0))

    def scaled_by(leaves: list[Array], weight: Lengths) -> list[Array]:
        each = [weight.reshape(-1, *[1] * (leaf.ndim - 1)) for leaf in leaves]
        return [jnp.where(own > 0.0, own * leaf, 0.0) for own, leaf in zip(each, leaves, strict=True)]

    def add(total: list[Array], chunk: tuple[Array, ...]) -> tuple[list[Array], None]:
        some_inputs, some_labels, some_counted = chunk
        computed = _computed_once(jax.vmap(own_gradient)(some_inputs, some_labels))
        gradients = [_in_double(leaf) for leaf in jax.tree.leaves(computed)]
        kept = scaled_by(gradients, jnp.where(some_counted, factor(lengths(gradients)), 0.0))
        kept = scaled_by(kept, jnp.where(lengths(kept) <= bound, 1.0, 0.0))
        return [so_far + jnp.sum(leaf, axis=0) for so_far, leaf in zip(total, kept, strict=True)], None

    size = min(CHUNK, counted.shape[0])
    spare = -counted.shape[0] % size
    padded = [jnp.pad(each, [(0, spare)] + [(0, 0)] * (each.ndim - 1)) for each in (inputs, labels, counted)]
    chunks = tuple(each.reshape(-1, size, *each.shape[1:]) for each in padded)
    leaves, structure = jax.tree.flatten(params)
    zero = [jnp.zeros(leaf.shape, jnp.float64) for leaf in leaves]
    return jax.tree.unflatten(structure, jax.lax.scan(add, zero, chunks)[0])


def _computed_once(tree: Tree) -> Tree:
    """The same values for the length and for the sum.

    Were a slope computed twice, in code that is fused differently, the two could differ by all of it: a slope is a
    difference of numbers that may be nearly equal.
    """
    return jax.lax.optimization_barrier(tree)  # type: ignore[no-untyped-call]


def _in_double(values: Array) -> Array:
    return jnp.where(jnp.abs(values) < SMALLEST, 0.0, values).astype(jnp.float64)


def _squared(rows: Float[Array, "sample value"]) -> Lengths:
    return jnp.sum(rows * rows, axis=1)
