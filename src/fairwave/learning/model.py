"""What fairwave asks of a model.

A model is any pytree of parameters with two functions: `init` draws one, `losses` gives the loss of each sample.
`logits` is for accuracy; a model without classes leaves it out. `numbers` is for the error of a model that predicts
numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from fairwave.types import Key, Scalar

Tree: TypeAlias = Any
"""A pytree of parameters."""
Inputs: TypeAlias = Float[Array, "sample ..."]
Labels: TypeAlias = Int[Array, " sample"] | Float[Array, " sample"]
"""Classes, or the numbers that a model is to predict."""
Logits: TypeAlias = Float[Array, "sample class"]
Losses: TypeAlias = Float[Array, " sample"]
SampleLoss: TypeAlias = Callable[[Logits, Labels], Losses]
"""From the outputs of a network and the labels to the loss of each sample."""
Taps: TypeAlias = list[tuple[Float[Array, "sample input"], Float[Array, "sample output"]]]
"""For each dense layer: its inputs, and the gradient of every sample's own loss by its outputs."""


def no_penalty(params: Tree) -> Scalar:
    """Nothing beyond the samples' losses."""
    return jnp.zeros((), jnp.float32)


@dataclasses.dataclass(frozen=True)
class Model:
    """Functions of a model; hashable, so that programs are compiled once per model."""

    init: Callable[[Key], Tree]
    losses: Callable[[Tree, Inputs, Labels], Losses]
    logits: Callable[[Tree, Inputs], Logits] | None = None
    penalty: Callable[[Tree], Scalar] = no_penalty
    """Added to the mean loss, such as a regulariser."""
    taps: Callable[[Tree, Inputs, Labels], Taps] | None = None
    """For a model of dense layers, a list of {weight, bias}: makes private training cheap."""
    training_losses: Callable[[Tree, Inputs, Labels], Losses] | None = None
    """The loss of each sample in local training, where it is another one than `losses`."""
    numbers: Callable[[Tree, Inputs], Float[Array, " sample"]] | None = None
    """What a model that predicts numbers says of each sample; None for a model of classes."""

    @property
    def trained_on(self) -> Callable[[Tree, Inputs, Labels], Losses]:
        """The loss of each sample that local steps lower."""
        return self.training_losses or self.losses


def flat_rows(stacked: Tree) -> tuple[Float[Array, "row param"], Callable[[Array], Tree]]:
    """Trees with a leading axis as a matrix, and what makes one row a tree again."""
    first = jax.tree.map(lambda leaf: leaf[0], stacked)
    return jax.vmap(lambda each: ravel_pytree(each)[0])(stacked), ravel_pytree(first)[1]


def cross_entropy(logits: Logits, labels: Labels) -> Losses:
    """Negative log likelihood of each sample's class."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]


def half_squared_error(outputs: Float[Array, "sample 1"], labels: Labels) -> Losses:
    """Half the square of what each sample's number is missed by."""
    return 0.5 * (outputs[:, 0] - labels) ** 2


@dataclasses.dataclass(frozen=True)
class SquaredLength:
    """Half the squared length of all parameters, weighted."""

    weight: float

    def __call__(self, params: Tree) -> Scalar:
        """The penalty of some parameters."""
        return 0.5 * self.weight * jnp.sum(jnp.stack([jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)]))


def classifier(
    init: Callable[[Key], Tree],
    logits: Callable[[Tree, Inputs], Logits],
    l2: float = 0.0,
    taps: Callable[[Tree, Inputs, Labels], Taps] | None = None,
) -> Model:
    """A model that is trained by cross entropy, from what draws its parameters and what scores the classes."""

    def losses(params: Tree, inputs: Inputs, labels: Labels) -> Losses:
        return cross_entropy(logits(params, inputs), labels)

    return Model(init=init, losses=losses, logits=logits, penalty=_penalty(l2), taps=taps)


def regressor(
    init: Callable[[Key], Tree],
    outputs: Callable[[Tree, Inputs], Float[Array, "sample 1"]],
    l2: float = 0.0,
    taps: Callable[[Tree, Inputs, Labels], Taps] | None = None,
) -> Model:
    """A model that is trained by half the squared error, from what draws its parameters and its one output."""

    def losses(params: Tree, inputs: Inputs, labels: Labels) -> Losses:
        return half_squared_error(outputs(params, inputs), labels)

    def numbers(params: Tree, inputs: Inputs) -> Float[Array, " sample"]:
        return outputs(params, inputs)[:, 0]

    return Model(init=init, losses=losses, numbers=numbers, penalty=_penalty(l2), taps=taps)


def _penalty(l2: float) -> Callable[[Tree], Scalar]:
    return SquaredLength(l2) if l2 > 0.0 else no_penalty
