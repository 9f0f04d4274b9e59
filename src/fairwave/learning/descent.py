"""The loop of local training: one device at its own pace, many of them in step.

Which samples a batch holds is drawn for a block of iterations at once, since the generator costs more than a small
model's whole step. Vectorised over devices, a loop of a device's own length would be decided on the host before every
step, and its result chosen in a pass of its own over all models: there all but the last few steps run in blocks of
fixed length, up to the longest device's number, and whoever has finished keeps its model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.model import Tree
from fairwave.types import Count

BLOCK = 10
"""Iterations whose batches are drawn together."""

Operands: TypeAlias = Any
"""All arrays that a step uses besides the model and the batch."""


class Step(eqx.Module):
    """One iteration in three parts, which close over no arrays."""

    draw: Callable[[Operands, Count], Array] = eqx.field(static=True)
    """The batch of an iteration, as sample numbers."""
    gradient: Callable[[Operands, Tree, Array], Tree] = eqx.field(static=True)
    move: Callable[[Operands, Tree, Tree], Tree] = eqx.field(static=True)
    """The model, and what goes with it from step to step, after a step along a gradient."""


def descent(step: Step, iterations: Count, start: Tree, operands: Operands) -> Any:
    """The model, and what goes with it from step to step, after so many steps."""
    loop = jax.custom_batching.custom_vmap(functools.partial(_at_own_pace, step))
    loop.def_vmap(functools.partial(_in_step, step))
    trained: Tree = loop(jnp.asarray(iterations), start, operands)
    return trained


def _at_own_pace(step: Step, iterations: Count, start: Tree, operands: Operands) -> Tree:
    def one(batches: Array, place: Count, params: Tree) -> Tree:
        return step.move(operands, params, step.gradient(operands, params, batches[place]))

    def block(index: Count, params: Tree) -> Tree:
        batches = _batches(step, operands, index)
        return jax.lax.fori_loop(
            0, jnp.minimum(BLOCK, iterations - index * BLOCK), functools.partial(one, batches), params
        )

    trained: Tree = jax.lax.fori_loop(0, -(-iterations // BLOCK), block, start)
    return trained


def _in_step(step: Step, num_devices: int, batched: Any, iterations: Count, start: Tree, operands: Operands) -> Any:
    longest = jnp.max(iterations)

    def own(iterations: Count, start: Tree, operands: Operands) -> Tree:
        def one(batches: Array, first: Count, place: Count, params: Tree) -> Tree:
            # Kept apart, so that the choice is made in the pass that moves the model.
            gradient = _apart(step.gradient(operands, params, batches[place]))
            moved = step.move(operands, params, gradient)
            return jax.tree.map(lambda new, old: jnp.where(first + place < iterations, new, old), moved, params)

        def block(length: Count | int, index: Count, params: Tree) -> Tree:
            batches = _batches(step, operands, index)
            return jax.lax.fori_loop(0, length, functools.partial(one, batches, index * BLOCK), params)

        whole = longest // BLOCK
        trained: Tree = jax.lax.fori_loop(0, whole, functools.partial(block, BLOCK), start)
        return block(longest - whole * BLOCK, whole, trained)

    axes = jax.tree.map(lambda each: 0 if each else None, batched)
    trained = jax.vmap(own, in_axes=tuple(axes), axis_size=num_devices)(iterations, start, operands)
    return trained, jax.tree.map(lambda _: True, trained)


_apart: Callable[[Tree], Tree] = jax.lax.optimization_barrier


def _batches(step: Step, operands: Operands, index: Count) -> Array:
    return jax.vmap(lambda place: step.draw(operands, index * BLOCK + place))(jnp.arange(BLOCK))
