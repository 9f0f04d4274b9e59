"""Order statistics of every value over many updates, without sorting.

XLA sorts slowly on a CPU. A value of a given rank is found here by bisection over the numbers that its type can hold,
read as integers in the same order: as many passes over the updates as a number has bits, and the result is exact.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fairwave.types import Count, FlagPerDevice, Params, UpdatePerDevice

BLOCK = 2_048
"""Values that are worked on at a time: so much of 1,000 updates stays near the processor from pass to pass."""


def of_rank(rows: UpdatePerDevice, counted: FlagPerDevice, rank: Count) -> Params:
    """The value of that rank, counted from 0, among the rows that count; meaningless where there are too few."""
    height, width = rows.shape
    if width <= BLOCK:
        return _of_rank(rows, counted, rank)
    starts = np.minimum(np.arange(0, width, BLOCK), width - BLOCK)  # the last block overlaps the one before

    def one(start: Count) -> Params:
        return _of_rank(jax.lax.dynamic_slice(rows, (0, start), (height, BLOCK)), counted, rank)

    found = jax.lax.map(one, jnp.asarray(starts))
    rest = width - BLOCK * (starts.size - 1)
    return jnp.concatenate([found[:-1].ravel(), found[-1][-rest:]])


def _of_rank(rows: UpdatePerDevice, counted: FlagPerDevice, rank: Count) -> Params:
    lowest, highest = _bounds(_integer(rows))
    keys = jnp.where(counted[:, None], _as_integer(rows), highest)
    least, most = (jnp.full(rows.shape[1], bound, keys.dtype) for bound in (lowest, highest))

    def halve(_: Count, between: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = between
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum may be too large for the type
        reached = jnp.sum(keys <= middle[None, :], axis=0) > rank
        return jnp.where(reached, low, middle + 1), jnp.where(reached, middle, high)

    found: Array = jax.lax.fori_loop(0, 8 * keys.dtype.itemsize, halve, (least, most))[0]
    return _as_float(found, rows.dtype)


def median(rows: UpdatePerDevice, counted: FlagPerDevice) -> Params:
    """The median of every value; zero where no row counts."""
    count = jnp.sum(counted)
    lower = of_rank(rows, counted, jnp.maximum(count - 1, 0) // 2)
    there, above = counted[:, None], rows > lower[None, :]
    repeated = jnp.sum(there & ~above, axis=0) > count // 2
    upper = jnp.where(repeated, lower, jnp.min(jnp.where(there & above, rows, jnp.inf), axis=0))
    return jnp.where(count > 0, 0.5 * lower + 0.5 * upper, 0.0)


def mean_between(rows: UpdatePerDevice, counted: FlagPerDevice, left_out: Count) -> Params:
    """The mean of every value without so many of the smallest and of the largest; fewer than half of them each."""
    count, there = jnp.sum(counted), counted[:, None]
    low, high = (of_rank(rows, counted, rank) for rank in (left_out, count - 1 - left_out))
    inside = there & (rows > low[None, :]) & (rows < high[None, :])
    # Of values that equal a bound, as many are used as complete the ranks.
    kept, num_inside = count - 2 * left_out, jnp.sum(inside, axis=0)
    num_low = jnp.sum(there & (rows <= low[None, :]), axis=0) - left_out
    num_high = kept - num_inside - num_low
    total = jnp.sum(jnp.where(inside, rows, 0.0), axis=0) + num_low * low + num_high * high
    mean = (total / jnp.maximum(kept, 1)).astype(rows.dtype)
    return jnp.where(count > 0, jnp.where(low == high, low, mean), 0.0)


def mean_of_smallest(
    rows: UpdatePerDevice, counted: FlagPerDevice, by: Float[Array, "device param"], used: Count
) -> Params:
    """The mean of every value over so many of the rows that count: those in which `by` is smallest.

    Rows that tie for the last places share them.
    """
    last, there = of_rank(by, counted, used - 1), counted[:, None]
    nearer, tied = there & (by < last[None, :]), there & (by == last[None, :])
    share = (used - jnp.sum(nearer, axis=0)) / jnp.maximum(jnp.sum(tied, axis=0), 1)
    total = jnp.sum(jnp.where(nearer, rows, 0.0), axis=0) + share * jnp.sum(jnp.where(tied, rows, 0.0), axis=0)
    return (total / jnp.maximum(used, 1)).astype(rows.dtype)


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
