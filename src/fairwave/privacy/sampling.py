"""Poisson batches: each record is taken with the same probability, independently of all others.

The arrays have a fixed size. Records beyond it are dropped, which is not the process that is accounted for; the
probability that it ever happens is added to delta. It suffices to add it once: condition on which of the *other*
records are taken. While fewer than the capacity are, nothing is dropped with or without the one in question, and the
accounting holds for every such choice; the rest has at most that probability.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from fairwave.types import Count, Scalar

STEPS_IN_MIND = 1e7
"""A batch is made large enough that so many steps overflow with a probability of at most delta."""


def sampling_probability(expected: int, count: Count | Int[Array, " device"]) -> Array:
    """Probability of each record, for batches of an expected size; 1 for a device that holds no more than that."""
    return jnp.minimum(1.0, expected / count.astype(jnp.float64))


def poisson_batch(
    bits: UInt32[Array, " held"], count: Count, probability: Scalar, capacity: int
) -> tuple[Int[Array, " capacity"], Bool[Array, " capacity"]]:
    """Places, among the first `count`, of the records taken, and which of the places are in use.

    A record is taken if its 32 random bits are below the probability's, rounded down. Who knows the bits knows the
    batch: the accounting counts on their being secret.
    """
    held = bits.shape[0]
    taken = (bits.astype(jnp.float64) < jnp.floor(probability * 2.0**32)) & (jnp.arange(held) < count)
    so_far = jnp.cumsum(taken)
    places = jnp.searchsorted(so_far, jnp.arange(1, capacity + 1))
    return jnp.minimum(places, held - 1), jnp.arange(capacity) < so_far[-1]


@functools.cache
def overflow_probability(count: int, probability: float, capacity: int) -> float:
    """That in one step so many of the other records are taken that one more would be too many."""
    from scipy.stats import binom

    return float(binom.sf(capacity - 1, count - 1, probability))


@functools.cache
def sufficient_capacity(expected: int, count: int, delta: float) -> int:
    """Places in a batch of that expected size: rarely all in use, and a multiple of 8."""
    from scipy.stats import binom

    if count <= expected:
        return -(-count // 8) * 8
    needed = int(binom.isf(delta / STEPS_IN_MIND, count - 1, expected / count)) + 2
    return min(-(-needed // 8), -(-count // 8)) * 8
