"""Programs that are compiled before they are called: all programs of a round side by side, one per core.

XLA compiles a program on one core, and a round has about twenty programs. `compile_ahead` rehearses a round: JAX traces
it with shapes in place of values, every program that the round calls is noted with its shapes, and threads compile the
noted programs. JAX keeps what it has traced and compiled, so that the round itself finds its programs ready. Nothing
is computed in a rehearsal, and no result depends on it.
"""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from fairwave.double_precision import Precision, in_precision, precision_here
from fairwave.learning.model import Tree


class Program:
    """A function that `jax.jit` compiles, and that a rehearsal compiles before the first call."""

    def __init__(self, function: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self._compiled = jax.jit(function, static_argnums=static_argnums)
        self._static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)

    def __call__(self, *arguments: Any) -> Any:
        """The function's result; in a rehearsal, its shape."""
        rehearsal = rehearsing()
        if rehearsal is None:
            return self._compiled(*arguments)
        given = [each if place in self._static else shapes(each) for place, each in enumerate(arguments)]
        fixed = tuple(given[place] for place in sorted(self._static))
        leaves, structure = jax.tree.flatten([each for place, each in enumerate(given) if place not in self._static])
        rehearsal.note((self, fixed, structure, *leaves), lambda: self._compiled.lower(*given).compile())
        token = _REHEARSAL.set(None)  # a program within this one is a part of it
        try:
            return self._compiled(*arguments)
        finally:
            _REHEARSAL.reset(token)


def program(static_argnums: int | Sequence[int] = ()) -> Callable[[Callable[..., Any]], Program]:
    """Make a function a program; some arguments are part of it."""
    return functools.partial(Program, static_argnums=static_argnums)


class Rehearsal:
    """Collects what a round will need, and compiles it on threads."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.begun: list[Future[object]] = []

    def note(self, key: Hashable, compiling: Callable[[], object]) -> None:
        """Compile something once, with the settings that JAX has at the moment."""
        settings = precision_here()
        if (key, settings) not in _NOTED:
            _NOTED.add((key, settings))
            self.begun.append(self._pool.submit(_compile, settings, compiling))


_NOTED: set[Hashable] = set()
"""Whatever was compiled ahead of time in this process: the next cell needs most of it again."""
_REHEARSAL: contextvars.ContextVar[Rehearsal | None] = contextvars.ContextVar("rehearsal", default=None)


def rehearsing() -> Rehearsal | None:
    """The rehearsal that the calling thread is in; None where values are computed."""
    return _REHEARSAL.get()


def compile_ahead(function: Callable[[], object]) -> None:
    """Rehearse a function, and compile every program that it calls.

    A step that looks at values on the host cannot be rehearsed. Programs that are called after it are compiled when
    they are called for the first time.
    """
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="compile") as pool:
        rehearsal = Rehearsal(pool)
        token = _REHEARSAL.set(rehearsal)
        try:
            jax.eval_shape(function)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            _REHEARSAL.reset(token)
        for each in rehearsal.begun:
            each.result()


def shapes(tree: Tree) -> Tree:
    """Shapes and types in place of values."""
    return jax.tree.map(_shape, tree)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    known = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(known.shape, known.dtype, weak_type=known.weak_type)  # type: ignore[no-untyped-call]


def _compile(settings: Precision, compiling: Callable[[], object]) -> object:
    """Compile on a thread with the settings of the one that asked."""
    with in_precision(settings):
        return compiling()
