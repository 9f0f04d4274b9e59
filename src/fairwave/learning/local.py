"""Local training of one device."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.learning.loss import Samples, mean_loss, scaled
from fairwave.learning.model import Model, Tree
from fairwave.types import Count, Key, Scalar


def surrogate_gradient(batch_gradient: Tree, correction: Tree) -> Tree:
    """Gradient of the local problem F(h) = L(w + h) - (grad L(w) - xi * mean gradient)' h.

    `correction` is the bracket, fixed for the round.

    Paper: Eq. (4).
    """
    return jax.tree.map(jnp.subtract, batch_gradient, correction)


def correction_term(own_gradient: Tree, mean_gradient: Tree, gradient_weight: float) -> Tree:
    """What the gradient exchange changes in the local problem: own gradient less the weighted mean."""
    return jax.tree.map(lambda own, mean: own - gradient_weight * mean, own_gradient, mean_gradient)


def descend(params: Tree, gradient: Tree, learning_rate: float) -> Tree:
    """One gradient step.

    Paper: Eq. (10).
    """
    return jax.tree.map(lambda p, g: p - learning_rate * g, params, gradient)


def train(
    model: Model,
    received: Tree,
    correction: Tree,
    samples: Samples,
    *,
    key: Key,
    iterations: Count,
    batch_size: int,
    learning_rate: float,
) -> Tree:
    """The device's model after its local iterations, each on a batch drawn from its data with replacement.

    The loop ends at the device's own number of iterations; mapped with `vmap`, finished devices wait.
    """
    gradient_of = jax.grad(lambda params, inputs, labels: mean_loss(model, params, inputs, labels))

    def step(iteration: Count, params: Tree) -> Tree:
        picks = jax.random.randint(jax.random.fold_in(key, iteration), (batch_size,), 0, samples.count)
        members = samples.own[picks]
        gradient = gradient_of(params, scaled(samples.inputs[members]), samples.labels[members])
        return descend(params, surrogate_gradient(gradient, correction), learning_rate)

    return jax.lax.fori_loop(0, iterations, step, received)


def update_of(trained: Tree, received: Tree) -> Tree:
    """What the device sends: how training moved its model."""
    return jax.tree.map(jnp.subtract, trained, received)


def norm(tree: Tree) -> Scalar:
    """Euclidean length of a pytree."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
