"""What fairwave asks of a model, and the models it brings.

A model is any pytree of parameters with two functions: `init` draws one, `losses` gives the loss of each sample.
`logits` is for accuracy; a model without classes leaves it out.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairwave.types import Key, Scalar

Tree: TypeAlias = Any
"""A pytree of parameters."""
Inputs: TypeAlias = Float[Array, "sample ..."]
Labels: TypeAlias = Int[Array, " sample"]


def no_penalty(params: Tree) -> Scalar:
    """Nothing beyond the samples' losses."""
    return jnp.zeros((), jnp.float32)


@dataclasses.dataclass(frozen=True)
class Model:
    """Functions of a model; hashable, so that programs are compiled once per model."""

    init: Callable[[Key], Tree]
    losses: Callable[[Tree, Inputs, Labels], Float[Array, " sample"]]
    logits: Callable[[Tree, Inputs], Float[Array, "sample class"]] | None = None
    penalty: Callable[[Tree], Scalar] = no_penalty
    """Added to the mean loss, such as a regulariser."""


def cross_entropy(logits: Float[Array, "sample class"], labels: Labels) -> Float[Array, " sample"]:
    """Negative log likelihood of each sample's class."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]


@dataclasses.dataclass(frozen=True)
class Mlp:
    """Dense layers with ReLU between them; inputs are flattened."""

    layer_sizes: tuple[int, ...]

    def init(self, key: Key) -> Tree:
        """Uniform within 1/sqrt(fan-in), weights and biases alike."""
        layers = []
        for index, (fan_in, fan_out) in enumerate(itertools.pairwise(self.layer_sizes)):
            weight_key, bias_key = jax.random.split(jax.random.fold_in(key, index))
            bound = 1.0 / math.sqrt(fan_in)
            weight = jax.random.uniform(weight_key, (fan_in, fan_out), jnp.float32, -bound, bound)
            bias = jax.random.uniform(bias_key, (fan_out,), jnp.float32, -bound, bound)
            layers.append({"weight": weight, "bias": bias})
        return layers

    def logits(self, params: Sequence[dict[str, Array]], inputs: Inputs) -> Float[Array, "sample class"]:
        """Unnormalised log probabilities."""
        hidden = inputs.reshape(inputs.shape[0], -1)
        for layer in params[:-1]:
            hidden = jax.nn.relu(hidden @ layer["weight"] + layer["bias"][None, :])
        return hidden @ params[-1]["weight"] + params[-1]["bias"][None, :]

    def losses(self, params: Sequence[dict[str, Array]], inputs: Inputs, labels: Labels) -> Float[Array, " sample"]:
        """Loss of each sample."""
        return cross_entropy(self.logits(params, inputs), labels)


@functools.cache
def mlp(layer_sizes: tuple[int, ...]) -> Model:
    """The paper's network for (784, 128, 64, 10); softmax regression for two sizes."""
    network = Mlp(layer_sizes)
    return Model(init=network.init, losses=network.losses, logits=network.logits)
