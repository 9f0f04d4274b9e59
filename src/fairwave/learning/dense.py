"""Dense layers: the paper's network with three of them, softmax or linear regression with one."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.activations import Elementwise
from fairwave.learning.model import Inputs, Labels, Logits, SampleLoss, Taps, cross_entropy
from fairwave.types import Key

Layer: TypeAlias = dict[str, Array]


def uniform_layers(key: Key, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Layer]:
    """Weights of each shape, and biases, uniform within 1/sqrt(fan-in); outputs are the last axis.

    All are drawn by one loop, as many numbers for each as for the largest: XLA takes seconds to compile a draw of its
    own for every layer. The first numbers of a draw do not depend on how many are drawn.
    """
    keys = jax.vmap(lambda index: jax.random.split(jax.random.fold_in(key, index)))(jnp.arange(len(shapes)))
    wanted = [part for shape in shapes.values() for part in (shape, shape[-1:])]
    bounds = [1.0 / math.sqrt(math.prod(shape[:-1])) for shape in shapes.values() for _ in range(2)]
    most = max(map(math.prod, wanted))

    def draw(own: tuple[Key, Array]) -> Array:
        return jax.random.uniform(own[0], (most,), jnp.float32, -own[1], own[1])

    drawn = jax.lax.map(draw, (keys.reshape(-1), jnp.asarray(bounds, jnp.float32)))
    parts = [row[: math.prod(shape)].reshape(shape) for row, shape in zip(drawn, wanted, strict=True)]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: {"weight": weight, "bias": bias} for name, (weight, bias) in zip(shapes, pairs, strict=True)}


def apply_layer(layer: Layer, inputs: Array) -> Array:
    """One affine map of every sample."""
    return inputs @ layer["weight"] + layer["bias"][None, :]


@dataclasses.dataclass(frozen=True)
class Dense:
    """Dense layers with an activation between them; inputs are flattened."""

    layer_sizes: tuple[int, ...]
    activation: Elementwise = jax.nn.relu
    loss: SampleLoss = cross_entropy
    """The loss that `taps` differentiates."""

    def init(self, key: Key) -> list[Layer]:
        """Layers of random weights."""
        shapes = enumerate(itertools.pairwise(self.layer_sizes))
        return list(uniform_layers(key, {str(index): shape for index, shape in shapes}).values())

    def logits(self, params: Sequence[Layer], inputs: Inputs) -> Logits:
        """Outputs of the last layer: unnormalised log probabilities, or a number."""
        return self._forward(params, inputs, [jnp.zeros((), jnp.float32)] * len(params))[0]

    def taps(self, params: Sequence[Layer], inputs: Inputs, labels: Labels) -> Taps:
        """Every layer's inputs, and the gradient of every sample's own loss by the layer's outputs."""

        def total_loss(shifts: list[Array]) -> tuple[Array, list[Array]]:
            logits, seen = self._forward(params, inputs, shifts)
            return jnp.sum(self.loss(logits, labels)), seen

        shifts = [jnp.zeros((inputs.shape[0], layer["bias"].shape[0]), jnp.float32) for layer in params]
        slopes, seen = jax.grad(total_loss, has_aux=True)(shifts)
        return list(zip(seen, slopes, strict=True))

    def _forward(self, params: Sequence[Layer], inputs: Inputs, shifts: Sequence[Array]) -> tuple[Logits, list[Array]]:
        """The last layer's outputs and every layer's inputs, with each layer's outputs shifted."""
        seen, outputs = [inputs.reshape(inputs.shape[0], -1)], jnp.zeros(())
        for index, (layer, shift) in enumerate(zip(params, shifts, strict=True)):
            outputs = apply_layer(layer, seen[index]) + shift
            seen.append(self.activation(outputs))
        return outputs, seen[:-1]
