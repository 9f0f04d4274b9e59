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

    def step(iteration: Count, params: Tree) -> Tree:
        gradient = _batch_gradient(model, params, samples, jax.random.fold_in(key, iteration), batch_size)
        return descend(params, surrogate_gradient(gradient, correction), learning_rate)

    return jax.lax.fori_loop(0, iterations, step, received)


def train_beside(
    model: Model,
    personal: Tree,
    shared: Tree,
    samples: Samples,
    *,
    key: Key,
    iterations: Count,
    batch_size: int,
    learning_rate: float,
    attachment: float,
) -> Tree:
    """A device's own model after so many steps on its data, pulled towards the shared one (Ditto's local problem).

    Li, Hu, Beirami, Smith, "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021.
    """

    def step(iteration: Count, params: Tree) -> Tree:
        gradient = _batch_gradient(model, params, samples, jax.random.fold_in(key, iteration), batch_size)
        pulled = jax.tree.map(lambda g, own, theirs: g + attachment * (own - theirs), gradient, params, shared)
        return descend(params, pulled, learning_rate)

    return jax.lax.fori_loop(0, iterations, step, personal)


def _batch_gradient(model: Model, params: Tree, samples: Samples, key: Key, batch_size: int) -> Tree:
    picks = jax.random.randint(key, (batch_size,), 0, samples.count)
    members = samples.own[picks]
    batch = scaled(samples.inputs[members]), samples.labels[members]
    return jax.grad(lambda at: mean_loss(model, at, *batch))(params)


def update_of(trained: Tree, received: Tree) -> Tree:
    """What the device sends: how training moved its model."""
    return jax.tree.map(jnp.subtract, trained, received)


def norm(tree: Tree) -> Scalar:
    """Euclidean length of a pytree."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
