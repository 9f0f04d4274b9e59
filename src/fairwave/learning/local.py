"""Local training of one device."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.descent import Operands, Step, descent
from fairwave.learning.loss import Samples, mean_loss, scaled
from fairwave.learning.model import Model, Tree
from fairwave.learning.optimizer import Optimizer
from fairwave.learning.pull import Pull, pulled
from fairwave.types import Count, Key, Scalar

PLAIN = Optimizer()


class Training(eqx.Module):
    """A model in the middle of local training."""

    params: Tree
    state: Tree
    """What the optimizer carries over from step to step."""


def begin(received: Tree, optimizer: Optimizer) -> Training:
    """Before the first step of a round."""
    return Training(received, optimizer.start(received))


def step_along(gradient: Tree, training: Training, optimizer: Optimizer, learning_rate: Scalar | float) -> Training:
    """After one more step."""
    direction, state = optimizer.direction(gradient, training.state)
    return Training(descend(training.params, direction, learning_rate), state)


def surrogate_gradient(batch_gradient: Tree, correction: Tree | None) -> Tree:
    """Gradient of the local problem F(h) = L(w + h) - (grad L(w) - xi * mean gradient)' h.

    `correction` is the bracket, fixed for the round; None where no gradients were exchanged.

    Paper: Eq. (4).
    """
    return batch_gradient if correction is None else jax.tree.map(jnp.subtract, batch_gradient, correction)


def correction_term(own_gradient: Tree, mean_gradient: Tree, gradient_weight: float) -> Tree:
    """What the gradient exchange changes in the local problem: own gradient less the weighted mean."""
    return jax.tree.map(lambda own, mean: own - gradient_weight * mean, own_gradient, mean_gradient)


def descend(params: Tree, gradient: Tree, learning_rate: Scalar | float) -> Tree:
    """One gradient step.

    Paper: Eq. (10).
    """
    return jax.tree.map(lambda p, g: p - learning_rate * g, params, gradient)


def train(
    model: Model,
    received: Tree,
    correction: Tree | None,
    samples: Samples,
    *,
    key: Key,
    iterations: Count,
    batch_size: int,
    learning_rate: Scalar | float,
    optimizer: Optimizer = PLAIN,
    pull: Pull | None = None,
) -> Tree:
    """The device's model after its local iterations, each on a batch drawn from its data with replacement.

    With a pull this is the local problem of Ditto (Li, Hu, Beirami, Smith, "Ditto: Fair and Robust Federated Learning
    Through Personalization", ICML 2021) and of MR-MTL (Liu, Hu, Wu, Smith, "On Privacy and Personalization in
    Cross-Silo Federated Learning", NeurIPS 2022).
    """

    def move(operands: Operands, training: Training, gradient: Tree) -> Training:
        slope = pulled(surrogate_gradient(gradient, operands[2]), training.params, operands[4])
        return step_along(slope, training, optimizer, operands[3])

    operands = (key, samples, correction, learning_rate, pull)
    return descent(_step(model, batch_size, move), iterations, begin(received, optimizer), operands).params


def _step(model: Model, batch_size: int, move: Callable[[Operands, Training, Tree], Training]) -> Step:
    """On batches drawn from a device's data; operands are the batches' key, the data, and what `move` needs."""

    def draw(operands: Operands, iteration: Count) -> Array:
        key, samples, *_ = operands
        picks = jax.random.randint(jax.random.fold_in(key, iteration), (batch_size,), 0, samples.count)
        return jnp.asarray(samples.own[picks])

    def gradient(operands: Operands, training: Training, members: Array) -> Tree:
        samples = operands[1]
        batch = scaled(samples.inputs[members]), samples.labels[members]
        return jax.grad(lambda at: mean_loss(model, at, *batch))(training.params)

    return Step(draw, gradient, move)


def update_of(trained: Tree, received: Tree) -> Tree:
    """What the device sends: how training moved its model."""
    return jax.tree.map(jnp.subtract, trained, received)


def scaled_by(tree: Tree, factor: Scalar | None) -> Tree:
    """A pytree times a number, in its own precision; as it is without one."""
    return tree if factor is None else jax.tree.map(lambda leaf: factor.astype(leaf.dtype) * leaf, tree)


def norm(tree: Tree) -> Scalar:
    """Euclidean length of a pytree."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
