"""How exactly matrix products are computed on hardware that has faster, coarser ones; a CPU always takes the exact."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

from fairwave.scenario.learning_parameters import Precision

Given = ParamSpec("Given")
Result = TypeVar("Result")

_NAMES: dict[Precision, str] = {"float32": "float32", "tf32": "tensorfloat32", "bf16": "BF16_BF16_F32"}
"""As JAX calls them; what it calls "bfloat16" is TF32 on a GPU."""


def computed_in(precision: Precision, function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function whose matrix products, and those of its gradient, are computed so; sums stay in single precision."""

    @functools.wraps(function)
    def computed(*args: Given.args, **named: Given.kwargs) -> Result:
        with jax.default_matmul_precision(_NAMES["float32" if jax.default_backend() == "cpu" else precision]):
            return function(*args, **named)

    return computed
