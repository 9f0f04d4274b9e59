"""The one seam where a device's function meets many devices.

On a CPU the devices are dealt to a thread per core, and each thread runs its devices one after the other in one
compiled program: two devices side by side beat one device on two cores, whose matrix products are too small to split.
On a GPU all devices are vectorised.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp

from fairwave.learning.model import Tree


class DeviceMap:
    """`function(shared, own)` of one device, for all devices: `own` and the result have a leading device axis."""

    def __init__(self, function: Callable[[Any, Any], Tree], *, one_by_one: bool = False) -> None:
        """`one_by_one` for a function that calls back to the host, which cannot be vectorised."""
        self._vectorised = jax.default_backend() != "cpu" and not one_by_one
        if self._vectorised:
            self._program = jax.jit(jax.vmap(function, in_axes=(None, 0)))
        else:
            self._program = jax.jit(lambda shared, own: jax.lax.map(lambda mine: function(shared, mine), own))
        self._compiled: set[int] = set()

    def __call__(self, shared: Tree, own: Tree, num_threads: int | None = None) -> Tree:
        """The function of every device, in the order of the devices, on so many threads (left out: one per core)."""
        num_devices = jax.tree.leaves(own)[0].shape[0]
        threads = min(num_threads or os.cpu_count() or 1, num_devices)
        if self._vectorised or threads == 1:
            return self._program(shared, own)
        size = -(-num_devices // threads)
        # Equal parts, so that one program serves all threads: the last part repeats its last device.
        parts = [_part(own, first, size) for first in range(0, num_devices, size)]
        return _joined(self._run(shared, parts, size), num_devices)

    def _run(self, shared: Tree, parts: list[Tree], size: int) -> list[Tree]:
        def work(part: Tree) -> Tree:
            with jax.enable_x64(True):  # a setting of the thread
                return jax.tree.map(lambda leaf: leaf.block_until_ready(), self._program(shared, part))

        if size not in self._compiled:  # threads would compile once each
            self._compiled.add(size)
            return list(map(work, parts))
        with ThreadPoolExecutor(len(parts)) as pool:
            return list(pool.map(work, parts))


@functools.partial(jax.jit, static_argnums=2)
def _part(own: Tree, first: int, size: int) -> Tree:
    """So many devices from the first on; the last device is repeated where they end."""
    return jax.tree.map(lambda leaf: leaf[jnp.minimum(first + jnp.arange(size), leaf.shape[0] - 1)], own)


@functools.partial(jax.jit, static_argnums=1)
def _joined(parts: list[Tree], num_devices: int) -> Tree:
    return jax.tree.map(lambda *pieces: jnp.concatenate(pieces)[:num_devices], *parts)
