"""The one seam where a device's function meets many devices.

In `threads`, for a CPU, devices are dealt to a thread per core, and each thread runs its devices one after the other in
one compiled program: two devices side by side beat one device on two cores, whose matrix products are too small to
split. In `vectorised`, for a GPU, they are one program, in chunks that fit into its memory. In `sharded`, for several
JAX devices on one host or many, each JAX device takes its part of them.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.double_precision import training_precision
from fairwave.engine.gpu_memory import largest_fitting
from fairwave.engine.programs import Program, Rehearsal, program, rehearsing, shapes
from fairwave.engine.sharding import sharded
from fairwave.learning.model import Tree

MOST_PER_CALL = 64
"""Devices that one thread computes in one call, so that what lies between programs stays small."""
LIGHT = 250_000
"""Multiplications per step of one device below which a thread of its own does not pay."""
ENOUGH_COMPANY = 2_500
"""Devices that keep a GPU busy: more would only wait for the slowest among them."""

Form = Literal["threads", "vectorised", "sharded"]


@dataclasses.dataclass(frozen=True)
class Execution:
    """How devices are computed. Results agree to rounding, whatever is chosen."""

    form: Form | None = None
    """How devices are spread over the hardware; None for what suits it."""
    one_program: bool | None = None
    """Light rounds whole as one program, in the form `vectorised`; None for that on a GPU."""
    threads: int | None = None
    """Threads of the form `threads`; None for one per core."""
    chunk: int | None = None
    """Devices that are vectorised at a time; None for as many as fit into memory."""

    def for_steps(self, num_parameters: int, batch_size: int) -> Execution:
        """For local steps of such a model: where they are light, handing them to a thread costs more than they do."""
        if self.form_here() == "threads" and self.form is None and num_parameters * batch_size < LIGHT:
            return dataclasses.replace(self, form="vectorised")
        return self

    def whole_rounds_here(self) -> bool:
        """Whether light rounds are one program each."""
        if self.form_here() != "vectorised":
            return False
        return jax.default_backend() != "cpu" if self.one_program is None else self.one_program

    def form_here(self) -> Form:
        """The form that is chosen, or that suits the hardware."""
        if self.form is not None:
            return self.form
        if jax.device_count() > 1:
            return "sharded"
        return "threads" if jax.default_backend() == "cpu" else "vectorised"


BEST_HERE = Execution()


class DeviceMap:
    """`function(shared, own)` of one device, for all devices: `own` and the result have a leading device axis."""

    def __init__(
        self,
        function: Callable[[Any, Any], Tree],
        *,
        one_by_one: bool = False,
        length: Callable[[Any], Array] | None = None,
    ) -> None:
        """`one_by_one` for a function that calls back to the host, which can be neither vectorised nor sharded.

        `length` tells from `own` how long each device will take, where that differs.
        """
        self._function, self._one_by_one, self._length = function, one_by_one, length
        self._serial = Program(functools.partial(serially, function))
        self._compiled: set[int] = set()
        self._programs: dict[Any, Callable[[Any, Any], Tree]] = {}

    def __call__(self, shared: Tree, own: Tree, execution: Execution = BEST_HERE) -> Tree:
        """The function of every device, in the order of the devices."""
        form = "threads" if self._one_by_one else execution.form_here()
        if form == "threads":
            return self._threaded(shared, own, execution.threads or os.cpu_count() or 1)
        rehearsal = rehearsing()
        if rehearsal is not None:
            return self._rehearsed(rehearsal, form, execution.chunk, shared, own)
        if form == "vectorised" and _is_traced(shared, own):  # a part of a larger program
            return self._at_once(execution.chunk, shared, own)
        return self._program(form, execution.chunk, shared, own)(shared, own)

    def _threaded(self, shared: Tree, own: Tree, threads: int) -> Tree:
        num_devices = jax.tree.leaves(own)[0].shape[0]
        if (threads == 1 and num_devices <= MOST_PER_CALL) or num_devices == 1:
            return self._serial(shared, own)
        calls = -(-num_devices // MOST_PER_CALL)
        size = -(-num_devices // (-(-calls // threads) * threads))
        # Equal parts, so that one program serves all threads: the last part repeats its last device.
        firsts = range(0, num_devices, size)
        if rehearsing() is not None:
            self._compiled.add(size)
            return _joined([self._serial(shared, _part(own, 0, size))] * len(firsts), num_devices)

        def work(first: int) -> Tree:
            with training_precision():  # a thread has settings of its own
                done = self._serial(shared, _part(own, first, size))
                return jax.tree.map(lambda leaf: leaf.block_until_ready(), done)

        alone = []
        if size not in self._compiled:  # threads would compile once each
            self._compiled.add(size)
            alone = [work(0)]
        return _joined([*alone, *_pool(threads).map(work, firsts[len(alone) :])], num_devices)

    def _rehearsed(self, rehearsal: Rehearsal, form: Form, chunk: int | None, shared: Tree, own: Tree) -> Tree:
        """Have a program of all devices compiled; a result of the right shape, with nothing in it."""
        given = shapes((shared, own))
        leaves, structure = jax.tree.flatten(given)
        rehearsal.note((self, form, chunk, structure, *leaves), lambda: self._program(form, chunk, *given))
        result = jax.eval_shape(functools.partial(vectorised, self._function, None), *given)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), result)

    def _program(self, form: Form, chunk: int | None, shared: Tree, own: Tree) -> Callable[[Any, Any], Tree]:
        """Compiled for these shapes, once."""
        leaves, structure = jax.tree.flatten((shared, own))
        key = (form, chunk, structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
        if key not in self._programs:
            if form == "sharded":
                serial = jax.default_backend() == "cpu"
                each = (
                    functools.partial(serially, self._function) if serial else functools.partial(self._at_once, chunk)
                )
                self._programs[key] = sharded(each)
            else:
                num_devices = jax.tree.leaves(own)[0].shape[0]
                most = num_devices if self._length is None else company(num_devices)
                self._programs[key] = largest_fitting(self._at_once, chunk, most, shared, own)
        return self._programs[key]

    def _at_once(self, chunk: int | None, shared: Tree, own: Tree) -> Tree:
        """Devices side by side, so many at a time."""
        if self._length is None:
            return vectorised(self._function, chunk, shared, own)
        return by_length(self._function, self._length, chunk, shared, own)


def serially(function: Callable[[Any, Any], Tree], shared: Tree, own: Tree) -> Tree:
    """One device after the other."""
    return jax.lax.map(lambda mine: function(shared, mine), own)


def vectorised(function: Callable[[Any, Any], Tree], chunk: int | None, shared: Tree, own: Tree) -> Tree:
    """A function of every device, `chunk` of them at a time; all at once if that is None."""
    if chunk is None or chunk >= jax.tree.leaves(own)[0].shape[0]:
        return jax.vmap(function, in_axes=(None, 0))(shared, own)
    return jax.lax.map(lambda mine: function(shared, mine), own, batch_size=chunk)


def by_length(
    function: Callable[[Any, Any], Tree],
    length: Callable[[Any], Array],
    chunk: int | None,
    shared: Tree,
    own: Tree,
) -> Tree:
    """A function of every device, `chunk` at a time: quick ones together, for a chunk is as slow as its slowest."""
    num_devices = jax.tree.leaves(own)[0].shape[0]
    chunk = min(chunk or num_devices, company(num_devices))
    if chunk >= num_devices:
        return vectorised(function, None, shared, own)
    order = jnp.argsort(length(own))
    sorted_results = vectorised(function, chunk, shared, jax.tree.map(lambda leaf: leaf[order], own))
    back = jnp.argsort(order)
    return jax.tree.map(lambda leaf: leaf[back], sorted_results)


def company(num_devices: int) -> int:
    """The size of equal parts of all devices, none larger than is enough."""
    return -(-num_devices // -(-num_devices // ENOUGH_COMPANY))


def _is_traced(*trees: Tree) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Starting a thread can take longer than a small model's round."""
    return ThreadPoolExecutor(threads, thread_name_prefix="devices")


@program(static_argnums=2)
def _part(own: Tree, first: int, size: int) -> Tree:
    """A number of devices from the first on; the last device is repeated where they end."""
    return jax.tree.map(lambda leaf: jnp.take(leaf, first + jnp.arange(size), axis=0, mode="clip"), own)


@program(static_argnums=1)
def _joined(parts: list[Tree], num_devices: int) -> Tree:
    return jax.tree.map(lambda *pieces: jnp.concatenate(pieces)[:num_devices], *parts)
