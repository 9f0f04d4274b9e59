"""What the access point makes of the devices' vectors."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.learning.model import Tree
from fairwave.types import FlagPerDevice


def mean_gradient(gradients: Tree, participating: FlagPerDevice) -> Tree:
    """Mean of the gradients of the devices that take part.

    Paper: Eq. (3).
    """
    return mean_of(gradients, participating)


def aggregate(global_params: Tree, updates: Tree, participating: FlagPerDevice) -> Tree:
    """The global model moved by the mean update of the devices that take part; unchanged if there are none.

    Paper: Eq. (5).
    """
    return jax.tree.map(jnp.add, global_params, mean_of(updates, participating))


def mean_of(stacked: Tree, participating: FlagPerDevice) -> Tree:
    """Mean over the devices that take part, along the first axis; zero if there are none."""
    count = jnp.maximum(jnp.sum(participating), 1).astype(jnp.float32)

    def of_leaf(leaf: jax.Array) -> jax.Array:
        mask = participating.reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.sum(jnp.where(mask, leaf, 0.0), axis=0) / count

    return jax.tree.map(of_leaf, stacked)
