"""Where a function of one variable changes sign: Newton's method inside a bracket, fit for `vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fairwave.types import Flag, Scalar

Operand = TypeVar("Operand")
Result = TypeVar("Result")


class _Search(eqx.Module):
    """`negative` and `positive` enclose the sign change, `at` is where to look next."""

    negative: Scalar
    positive: Scalar
    at: Scalar
    step: Scalar

    def unfinished(self) -> Flag:
        return jnp.abs(self.step) > 4.0 * _rounding(self.at)


def sign_change(
    function: Callable[[Scalar], Scalar], low: Scalar, high: Scalar, negative_at_low: Flag | None = None
) -> Scalar:
    """Where `function` turns from negative to positive on the way from `low` to `high`.

    The answer is `low` if it is not negative there, else `high` if it is not positive there. `low` may be the larger
    number; a caller that knows the sign there may save an evaluation. The search starts at `high`, takes Newton's
    step while that stays inside the bracket and at least halves the last one, and halves the bracket otherwise, so
    that it always ends; lanes under `vmap` that are done wait.
    """
    rises = function(low) < 0.0 if negative_at_low is None else negative_at_low
    start = jnp.where(rises, high, low)
    search = _Search(negative=low, positive=start, at=start, step=jnp.full_like(start, jnp.inf))
    return jax.lax.while_loop(lambda state: state.unfinished(), lambda state: _narrow(function, state), search).at


def _narrow(function: Callable[[Scalar], Scalar], state: _Search) -> _Search:
    value, slope = jax.jvp(function, (state.at,), (jnp.ones_like(state.at),))
    at_end = (value <= 0.0) & (state.at == state.positive)
    negative = jnp.where((value < 0.0) | at_end, state.at, state.negative)
    positive = jnp.where(value < 0.0, state.positive, state.at)
    move = -value / slope
    newton = state.at + move
    trusted = ((newton - negative) * (newton - positive) <= 0.0) & (jnp.abs(move) < 0.5 * jnp.abs(state.step))
    following = jnp.where(trusted, newton, 0.5 * (negative + positive))
    # A Newton step leaves an error of the order of its square over the scale on which the function bends, which the
    # bracket bounds from below: once that is less than rounding, the next step would change nothing.
    settled = trusted & (move**2 <= _rounding(state.at) * jnp.abs(positive - negative))
    return _Search(negative, positive, following, jnp.where(settled, 0.0, following - state.at))


def _rounding(at: Scalar) -> Scalar:
    return float(np.finfo(at.dtype).eps) * jnp.abs(at)


def where_needed(needed: Flag, compute: Callable[[Operand], Result], operand: Operand, otherwise: Result) -> Result:
    """`compute(operand)` where needed, `otherwise` elsewhere.

    A loop that runs at most once: under `vmap`, where a `cond` computes for all, it is skipped if no lane needs it.
    """

    def body(state: tuple[Flag, Result]) -> tuple[Flag, Result]:
        # What is computed must depend on the loop's state, or XLA moves it out of the loop and always runs it.
        used = jax.tree.map(lambda leaf: jnp.where(state[0], leaf, jnp.ones_like(leaf)), operand)
        return jnp.zeros_like(needed), compute(used)

    return jax.lax.while_loop(lambda state: state[0], body, (needed, otherwise))[1]
