"""Order statistics of every value over many updates, without sorting.

XLA sorts slowly on a CPU. A value of a given rank is found here by bisection over the numbers that its type can hold,
read as integers in the same order, 16 bits at a time: a pass over short integers is several times as fast as one over
the updates, there are as many passes as a number has bits, and the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from fairwave.types import Count, FlagPerDevice, Params, UpdatePerDevice

BLOCK = 1_024
"""Values that are worked on at a time: so much of 1,000 updates stays near the processor from pass to pass."""
DIGIT = 16
"""Bits that are found at a time."""


def median(rows: UpdatePerDevice, counted: FlagPerDevice) -> Params:
    """The median of every value; zero where no row counts."""
    return _by_block(lambda block: _median(block, counted), rows)


def mean_between(rows: UpdatePerDevice, counted: FlagPerDevice, left_out: Count) -> Params:
    """The mean of every value without so many of the smallest and of the largest; fewer than half of them each."""
    return _by_block(lambda block: _mean_between(block, counted, left_out), rows)


def mean_of_nearest(rows: UpdatePerDevice, counted: FlagPerDevice, centre: Params, used: Count) -> Params:
    """The mean of every value over so many of the rows that count: those that are nearest to the centre.

    Rows that tie for the last places share them.
    """
    return _by_block(lambda block, middle: _mean_of_nearest(block, counted, middle, used), rows, centre)


def _by_block(function: Callable[..., Params], *given: Shaped[Array, "*any param"]) -> Params:
    """A function of the updates' values, for some values at a time."""
    width = given[0].shape[-1]
    if width <= BLOCK:
        return function(*given)
    starts = np.minimum(np.arange(0, width, BLOCK), width - BLOCK)  # the last block overlaps the one before

    def one(start: Count) -> Params:
        return function(*(jax.lax.dynamic_slice_in_dim(each, start, BLOCK, axis=-1) for each in given))

    found = jax.lax.map(one, jnp.asarray(starts))
    rest = width - BLOCK * (starts.size - 1)
    return jnp.concatenate([found[:-1].ravel(), found[-1][-rest:]])


def _median(rows: UpdatePerDevice, counted: FlagPerDevice) -> Params:
    count = jnp.sum(counted)
    lower = of_rank(rows, counted, jnp.maximum(count - 1, 0) // 2)
    there, above = counted[:, None], rows > lower[None, :]
    repeated = _number(there & ~above) > count // 2
    upper = jnp.where(repeated, lower, jnp.min(jnp.where(there & above, rows, jnp.inf), axis=0))
    return jnp.where(count > 0, 0.5 * lower + 0.5 * upper, 0.0)


def _mean_between(rows: UpdatePerDevice, counted: FlagPerDevice, left_out: Count) -> Params:
    count, there = jnp.sum(counted), counted[:, None]
    low, high = (of_rank(rows, counted, rank) for rank in (left_out, count - 1 - left_out))
    inside = there & (rows > low[None, :]) & (rows < high[None, :])
    # Of values that equal a bound, as many are used as complete the ranks.
    kept, num_inside = count - 2 * left_out, _number(inside)
    num_low = _number(there & (rows <= low[None, :])) - left_out
    num_high = kept - num_inside - num_low
    total = jnp.sum(jnp.where(inside, rows, 0.0), axis=0) + num_low * low + num_high * high
    mean = (total / jnp.maximum(kept, 1)).astype(rows.dtype)
    return jnp.where(count > 0, jnp.where(low == high, low, mean), 0.0)


def _mean_of_nearest(rows: UpdatePerDevice, counted: FlagPerDevice, centre: Params, used: Count) -> Params:
    apart, there = jnp.abs(rows - centre[None, :]), counted[:, None]
    last = of_rank(apart, counted, used - 1)
    nearer, tied = there & (apart < last[None, :]), there & (apart == last[None, :])
    share = (used - _number(nearer)) / jnp.maximum(_number(tied), 1)
    total = jnp.sum(jnp.where(nearer, rows, 0.0), axis=0) + share * jnp.sum(jnp.where(tied, rows, 0.0), axis=0)
    return (total / jnp.maximum(used, 1)).astype(rows.dtype)


def of_rank(rows: UpdatePerDevice, counted: FlagPerDevice, rank: Count) -> Params:
    """The value of that rank, counted from 0, among the rows that count; meaningless where there are too few."""
    keys = _as_integer(rows)
    candidates = jnp.broadcast_to(counted[:, None], keys.shape)
    rank = jnp.broadcast_to(rank, rows.shape[1:]).astype(jnp.int32)
    found = jnp.zeros(rows.shape[1:], keys.dtype)
    for shift in reversed(range(0, 8 * keys.dtype.itemsize, DIGIT)):
        digits = _digit(keys, shift)
        digit = _digit_of_rank(jnp.where(candidates, digits, _bounds(digits.dtype)[1]), rank)
        rank = rank - _number(candidates & (digits < digit[None, :]))
        candidates = candidates & (digits == digit[None, :])
        found = found | _placed(digit, shift, keys.dtype)
    return _as_float(found, rows.dtype)


def _digit_of_rank(digits: Int[Array, "device param"], rank: Int[Array, " param"]) -> Int[Array, " param"]:
    """The digit of that rank in every column; whatever does not count has the largest."""
    lowest, highest = _bounds(digits.dtype)
    least, most = (jnp.full(digits.shape[1:], bound, digits.dtype) for bound in (lowest, highest))

    def halve(_: Count, between: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = between
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum may be too large for the type
        reached = _number(digits <= middle[None, :]) > rank
        return jnp.where(reached, low, middle + 1), jnp.where(reached, middle, high)

    found: Array = jax.lax.fori_loop(0, DIGIT, halve, (least, most))[0]
    return found


def _number(flags: Array) -> Int[Array, " param"]:
    """How many there are in every column, counted in the shortest integers that can hold it."""
    short = flags.shape[0] <= _bounds(np.dtype(np.int16))[1]
    return jnp.sum(flags, axis=0, dtype=jnp.int16 if short else jnp.int32).astype(jnp.int32)


def _digit(keys: Array, shift: int) -> Int[Array, "device param"]:
    """16 bits of every key, in the order of signed integers."""
    if shift + DIGIT == 8 * keys.dtype.itemsize:
        return (keys >> shift).astype(jnp.int16)
    return (((keys >> shift) & 0xFFFF) - 0x8000).astype(jnp.int16)


def _placed(digit: Array, shift: int, kind: np.dtype) -> Array:
    """The bits of a digit where it stands in a key."""
    if shift + DIGIT == 8 * kind.itemsize:
        return digit.astype(kind) << shift
    return (digit.astype(kind) + 0x8000) << shift


def _integer(values: Array) -> np.dtype:
    return np.dtype(f"int{8 * values.dtype.itemsize}")


def _bounds(kind: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


def _as_integer(values: Array) -> Array:
    """Integers in the same order: numbers below zero count downwards."""
    return _turned(jax.lax.bitcast_convert_type(values, _integer(values)))


def _as_float(keys: Array, kind: np.dtype) -> Array:
    return jax.lax.bitcast_convert_type(_turned(keys), kind)


def _turned(bits: Array) -> Array:
    """All bits but the sign turned over, where the sign is set; turned twice, they are as before."""
    return jnp.where(bits < 0, bits ^ _bounds(bits.dtype)[1], bits)
