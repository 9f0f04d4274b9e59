"""The pull of a model towards another one in local training, and what it leaves of the noise of earlier steps."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from fairwave.learning.model import Tree
from fairwave.types import Count, Scalar


class Pull(eqx.Module):
    """A term (weight / 2) |w - towards|^2 in the local problem."""

    towards: Tree
    """The model towards which training is pulled."""
    weight: float = eqx.field(static=True)
    """The pull lambda."""


def pulled(gradient: Tree, params: Tree, pull: Pull | None) -> Tree:
    """The gradient of a loss, plus that of the pull; no record enters the latter."""
    if pull is None:
        return gradient
    weight = pull.weight
    return jax.tree.map(lambda slope, own, theirs: slope + weight * (own - theirs), gradient, params, pull.towards)


def noise_gain_under_pull(steps: Count, momentum: float, shrinkage: Scalar | float) -> Scalar:
    """Std of the noise that steps of rate 1 leave in each value of a model, for unit noise in each step's gradient.

    `shrinkage` is learning rate times pull; `momentum` is 0 for plain steps. The noise of one step moves the model once
    and its direction from then on: x <- x + v after v <- m v - shrinkage x, from x = v = 1. Steps' noises are
    independent, so that the squares of x add up. For plain steps x is a^k after k further steps with a = 1 - shrinkage,
    and the sum is (1 - a^(2 steps)) / (1 - a^2).
    """
    one = jnp.ones((), jnp.float64)

    def step(_: Count, carried: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        moved, direction, squares = carried
        after = momentum * direction - shrinkage * moved
        return moved + after, after, squares + moved**2

    _, _, squares = jax.lax.fori_loop(0, steps, step, (one, one, jnp.zeros((), jnp.float64)))
    return jnp.sqrt(squares)
