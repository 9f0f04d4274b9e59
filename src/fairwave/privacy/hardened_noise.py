"""Gaussian noise fit for deployment: the operating system's randomness, double precision, the result on a grid.

Single-precision noise has holes: an observer rules out every candidate from which the released value cannot be
reached. Here each released value is a multiple of a power of two that follows from the public std alone, and every
multiple can be reached from everywhere. The value is split into its nearest multiple and the rest, so that noise is
added to a small number and rounding errors do not depend on how large the value is.
"""

from __future__ import annotations

import math
import os

import numpy as np

PER_STD = 8
"""At least so many grid steps to one std; rounding then adds at most 1/768 to the variance."""
RANDOM_BITS = 52
"""Of the magnitude; one more is the sign."""
DISTANCE = 2e-14
"""Total variation between the law of one released value and that of a rounded Gaussian, at most: each of the some 270
grid cells within reach is hit with its probability rounded to 53 bits. A test enumerates the cells."""


def grid_step(std: float, per_std: int = PER_STD) -> float:
    """The largest power of two that is at most a given share of the std."""
    return math.ldexp(1.0, math.floor(math.log2(std / per_std)))


def hardened_noised(values: np.ndarray, std: float) -> np.ndarray:
    """Values plus noise of that std, as multiples of the grid's step; unchanged for a std of 0."""
    if std == 0.0:
        return values
    bits = np.frombuffer(os.urandom(8 * values.size), np.uint64).reshape(values.shape)
    return on_grid(values, std * normal_of_bits(bits), grid_step(std))


def normal_of_bits(bits: np.ndarray) -> np.ndarray:
    """Standard normal numbers: the upper bits are the probability of a larger magnitude, the lowest is the sign."""
    from scipy.special import ndtri

    tail = ((bits >> np.uint64(64 - RANDOM_BITS)).astype(np.float64) + 0.5) * 2.0 ** -(RANDOM_BITS + 1)
    return np.asarray(np.where(bits & np.uint64(1), 1.0, -1.0) * ndtri(tail))


def on_grid(values: np.ndarray, noise: np.ndarray, step: float) -> np.ndarray:
    """The multiples of the step that are nearest to values plus noise."""
    whole = np.rint(values / step)
    rest = values - whole * step
    return np.asarray((whole + np.rint((rest + noise) / step)) * step)
