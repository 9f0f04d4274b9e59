"""Devices spread over several JAX devices, on one host or on many.

All hosts run the same program and hold the same state: only the work of the devices is divided, and its results are
gathered everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fairwave.learning.model import Tree

AXIS = "devices"


def sharded(each: Callable[[Any, Any], Tree]) -> Callable[[Any, Any], Tree]:
    """A function of many devices that every JAX device calls with its part of them."""
    mesh = Mesh(np.asarray(jax.devices()), (AXIS,))
    everywhere, in_parts = _spec(), _spec(AXIS)

    def gathered(shared: Tree, own: Tree) -> Tree:
        return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS, tiled=True), each(shared, own))

    program = jax.jit(
        jax.shard_map(gathered, mesh=mesh, in_specs=(everywhere, in_parts), out_specs=everywhere, check_vma=False)
    )

    def run(shared: Tree, own: Tree) -> Tree:
        num_devices = jax.tree.leaves(own)[0].shape[0]
        # Equal parts: the last device is repeated where they end.
        padded = np.minimum(np.arange(-(-num_devices // mesh.size) * mesh.size), num_devices - 1)
        own = jax.tree.map(lambda leaf: leaf[padded], own)
        result = program(_placed(shared, NamedSharding(mesh, everywhere)), _placed(own, NamedSharding(mesh, in_parts)))
        return jax.tree.map(lambda leaf: leaf.addressable_data(0)[:num_devices], result)

    return run


_spec: Callable[..., PartitionSpec] = PartitionSpec


def _placed(tree: Tree, sharding: NamedSharding) -> Tree:
    """The same arrays, which every host holds whole, where the program wants them."""

    def placed(leaf: Any) -> jax.Array:
        leaf = jnp.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, sharding, lambda index: leaf[index])

    return jax.tree.map(placed, tree)
