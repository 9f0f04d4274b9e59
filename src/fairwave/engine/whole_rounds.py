"""Whole rounds as one program, of one cell or of several that differ only in arrays, such as those of several seeds.

On a GPU, launching the twenty programs of a small round takes longer than computing it, and ten devices do not fill the
processor. As one program a round is launched once, and the devices of several cells are computed side by side. The
values agree with those of single programs to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from fairwave.double_precision import training_precision
from fairwave.engine.gpu_memory import fits
from fairwave.engine.round import run_round
from fairwave.engine.round_record import RoundRecord
from fairwave.engine.state import State
from fairwave.learning.model import Tree
from fairwave.types import Count

if TYPE_CHECKING:
    from fairwave.engine.cell import SimulatedCell

States = tuple[State, ...]
Ends = tuple[tuple[State, RoundRecord], ...]
"""The next state and the record of every cell."""

GPU_OPTIONS: dict[str, str | bool] = {"xla_gpu_enable_triton_gemm": False}
"""Products by the vendor's library, without trying out kernels: in float32 a round takes a seventh more time, and
compiling a quarter of it. Lower precisions, which are chosen for speed, keep the kernels."""


class NotOneProgram(Exception):
    """The rounds of these cells cannot be one program, and the reason why."""


class WholeRounds:
    """The rounds of some cells, one program each."""

    def __init__(self, cells: Sequence[SimulatedCell]) -> None:
        self._cells = tuple(cells)
        self._programs: dict[Hashable, Callable[[States, Count], Ends]] = {}

    def __call__(self, states: States, round_index: int) -> Ends:
        """The next state of every cell, and what happened; `compile` says beforehand whether that is possible."""
        program = self.compile(states, round_index)
        with training_precision():
            return program(states, jnp.asarray(round_index))

    def compile(self, states: States, round_index: int) -> Callable[[States, Count], Ends]:
        """The program of a round, compiled once for all rounds of such a shape."""
        evaluated = self._cells[0].evaluator.is_due(round_index)
        leaves, structure = jax.tree.flatten(states)
        key = (evaluated, structure, *((leaf.shape, leaf.dtype) for leaf in leaves))
        if key not in self._programs:
            with training_precision():
                self._programs[key] = _compiled(self._cells, states, evaluated)
        return self._programs[key]


class _Traced(NamedTuple):
    """A cell's round before it is compiled."""

    closed: ClosedJaxpr
    """What is computed, and the arrays that the cell has of its own."""
    structure: Any
    """That of the result."""


def _compiled(cells: Sequence[SimulatedCell], states: States, evaluated: bool) -> Callable[[States, Count], Ends]:
    traced = [_traced(cell, state, evaluated) for cell, state in zip(cells, states, strict=True)]
    first = traced[0]
    if len({str(each.closed.jaxpr) for each in traced}) > 1:
        raise NotOneProgram("they compute differently")
    arrays, axes = _in_common([each.closed.consts for each in traced])

    def together(arrays: list[Any], states: States, round_index: Count) -> Ends:
        def one(own: list[Any], state: State) -> tuple[State, RoundRecord]:
            compute = jaxpr_as_fun(ClosedJaxpr(first.closed.jaxpr, own))
            end: tuple[State, RoundRecord] = jax.tree.unflatten(
                first.structure, compute(*jax.tree.leaves((state, round_index)))
            )
            return end

        if len(states) == 1:
            return (one(arrays, states[0]),)
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        ends = jax.vmap(one, in_axes=(axes, 0))(arrays, stacked)
        return tuple(_part(ends, place) for place in range(len(states)))

    exact = cells[0].scenario.learning.precision == "float32"
    options = GPU_OPTIONS if exact and jax.default_backend() != "cpu" else None
    program = jax.jit(together).lower(arrays, states, jnp.asarray(0)).compile(compiler_options=options)
    if not fits(program):
        raise NotOneProgram("it does not fit into memory")
    return lambda states, round_index: program(arrays, states, round_index)


def _part(ends: tuple[State, RoundRecord], place: int) -> tuple[State, RoundRecord]:
    part: tuple[State, RoundRecord] = jax.tree.map(lambda leaf: leaf[place], ends)
    return part


def _traced(cell: SimulatedCell, state: State, evaluated: bool) -> _Traced:
    def whole(state: State, round_index: Count) -> tuple[State, RoundRecord]:
        return run_round(cell, state, round_index, evaluated)

    try:
        closed, shape = jax.make_jaxpr(whole, return_shape=True)(state, jnp.asarray(0))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        raise NotOneProgram("a step looks at values on the host") from None
    return _Traced(closed, jax.tree.structure(shape))


def _in_common(own: Sequence[Sequence[Any]]) -> tuple[list[Any], list[int | None]]:
    """The arrays of all cells, stacked where they differ, and along which axis each array is mapped."""
    arrays: list[Any] = []
    axes: list[int | None] = []
    for column in zip(*own, strict=True):
        alike = all(_same(column[0], other) for other in column[1:])
        arrays.append(column[0] if alike else jnp.stack(column))
        axes.append(None if alike else 0)
    return arrays, axes


def _same(one: Tree, other: Tree) -> bool:
    if one is other:
        return True
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        return False
    return bool(jnp.array_equal(one, other, equal_nan=jnp.issubdtype(one.dtype, jnp.inexact)))
