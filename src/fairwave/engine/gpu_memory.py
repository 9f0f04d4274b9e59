"""How many devices fit into an accelerator's memory at a time: the compiler says what a program takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from fairwave.learning.model import Tree

SHARE = 0.8
"""Share of the free memory that one program may take; the rest is for what the allocator cannot place."""

Chunked = Callable[[int | None, Any, Any], Tree]
"""A program that computes so many devices at a time, or all."""


def largest_fitting(program: Chunked, chunk: int | None, most: int, shared: Tree, own: Tree) -> jax.stages.Compiled:
    """The program compiled for as many devices at a time as fit into free memory, or for `chunk` of them.

    `most` is how many it computes at a time if none is given.
    """
    compiled = _compiled(program, chunk, shared, own)
    budget = free_bytes()
    if chunk is not None or budget is None:
        return compiled
    chunk = most
    while (needed := _scratch_bytes(compiled)) > budget and chunk > 1:
        # In proportion, for what a program needs besides the devices' own is small.
        chunk = min(chunk // 2, max(1, int(chunk * budget / needed)))
        compiled = _compiled(program, chunk, shared, own)
    return compiled


def fits(compiled: jax.stages.Compiled) -> bool:
    """Whether a program has room in free memory."""
    budget = free_bytes()
    return budget is None or _scratch_bytes(compiled) <= budget


def free_bytes() -> int | None:
    """Memory that a program may take now; None where the backend does not tell."""
    memory = jax.local_devices()[0].memory_stats()
    return None if memory is None else int(SHARE * (memory["bytes_limit"] - memory["bytes_in_use"]))


def _compiled(program: Chunked, chunk: int | None, shared: Tree, own: Tree) -> jax.stages.Compiled:
    return jax.jit(functools.partial(program, chunk)).lower(shared, own).compile()


def _scratch_bytes(compiled: jax.stages.Compiled) -> int:
    analysis: Any = compiled.memory_analysis()
    return int(analysis.temp_size_in_bytes + analysis.output_size_in_bytes)
