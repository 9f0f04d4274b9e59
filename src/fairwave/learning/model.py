"""What fairwave asks of a model.

A model is any pytree of parameters with two functions: `init` draws one, `losses` gives the loss of each sample.
`logits` is for accuracy; a model without classes leaves it out.
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
Labels: TypeAlias = Int[Array, " sample"]
Logits: TypeAlias = Float[Array, "sample class"]
Taps: TypeAlias = list[tuple[Float[Array, "sample input"], Float[Array, "sample output"]]]
"""For each dense layer: its inputs, and the gradient of every sample's own loss by its outputs."""


def no_penalty(params: Tree) -> Scalar:
    """Nothing beyond the samples' losses."""
    return jnp.zeros((), jnp.float32)


@dataclasses.dataclass(frozen=True)
class Model:
    """Functions of a model; hashable, so that programs are compiled once per model."""

    init: Callable[[Key], Tree]
    losses: Callable[[Tree, Inputs, Labels], Float[Array, " sample"]]
    logits: Callable[[Tree, Inputs], Logits] | None = None
    penalty: Callable[[Tree], Scalar] = no_penalty
    """Added to the mean loss, such as a regulariser."""
    taps: Callable[[Tree, Inputs, Labels], Taps] | None = None
    """For a model of dense layers, a list of {weight, bias}: makes private training cheap."""


def flat_rows(stacked: Tree) -> tuple[Float[Array, "row param"], Callable[[Array], Tree]]:
    """Trees with a leading axis as a matrix, and what makes one row a tree again."""
    first = jax.tree.map(lambda leaf: leaf[0], stacked)
    return jax.vmap(lambda each: ravel_pytree(each)[0])(stacked), ravel_pytree(first)[1]


def cross_entropy(logits: Logits, labels: Labels) -> Float[Array, " sample"]:
    """Negative log likelihood of each sample's class."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]


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

    def losses(params: Tree, inputs: Inputs, labels: Labels) -> Float[Array, " sample"]:
        return cross_entropy(logits(params, inputs), labels)

    penalty = SquaredLength(l2) if l2 > 0.0 else no_penalty
    return Model(init=init, losses=losses, logits=logits, penalty=penalty, taps=taps)
