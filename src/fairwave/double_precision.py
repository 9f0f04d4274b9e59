"""Policies, plans and accounts compute in double precision; models stay in single.

JAX computes in single precision by default, and a library must not switch that for its caller's own
programs. So every entry to fairwave's own computations switches it for as long as they last, with this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Double precision inside a `with` statement, or inside every call of a function that this decorates."""
    import jax

    with jax.enable_x64(True):
        yield


@contextlib.contextmanager
def training_precision() -> Iterator[None]:
    """Double precision for policies, and matrix products of models in float32 on every backend."""
    import jax

    with jax.enable_x64(True), jax.default_matmul_precision("float32"):
        yield


class Precision(NamedTuple):
    """Settings of JAX that belong to a thread: double precision or not, and the precision of matrix products."""

    double: bool
    products: str | None


def precision_here() -> Precision:
    """The settings of the calling thread."""
    import jax

    known: Any = jax.config  # has its options from when JAX is imported
    return Precision(known.jax_enable_x64, known.jax_default_matmul_precision)


@contextlib.contextmanager
def in_precision(settings: Precision) -> Iterator[None]:
    """Another thread's settings."""
    import jax

    with jax.enable_x64(settings.double), jax.default_matmul_precision(settings.products):
        yield
