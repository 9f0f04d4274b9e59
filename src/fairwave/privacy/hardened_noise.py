"""Gaussian noise fit for deployment: the operating system's randomness, double precision, the result on a grid.

Single-precision noise has holes: an observer rules out every candidate from which the released value cannot be
reached. Here each released value is a multiple of a power of two that follows from the public std alone, and every
multiple can be reached from everywhere. The value is split into its nearest multiple and the rest, so that noise is
added to a small number and rounding errors do not depend on how large the value is.

53 random bits name an interval of probability. Where all of it leads to the same multiple, and no rounding error could
change that, the multiple is clear. Elsewhere, once in many millions of values, more bits and more digits decide.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

PER_STD = 8
"""At least so many grid steps to one std; rounding then adds at most 1/768 to the variance."""
INTERVALS = 2.0**52
"""Bits of the magnitude's tail probability, from 0 to 1/2; one more bit is the sign."""
DOUBT = 1e-9
"""Distance from the middle between two multiples, in grid steps, that double precision is not trusted with; its errors
are some 1e-13."""
MORE_BYTES, DIGITS = 32, 110
"""Random bytes and decimal digits where there is doubt."""
DISTANCE = 2.0**-200
"""Total variation between the law of one released value and that of a rounded Gaussian, with room to spare: even times
1 + e^epsilon, which a distance costs, it is nothing for any epsilon below 60."""


def grid_step(std: float, per_std: float = PER_STD) -> float:
    """The largest power of two that is at most a given share of the std."""
    return math.ldexp(1.0, math.floor(math.log2(std / per_std)))


def hardened_noised(values: np.ndarray, std: float) -> np.ndarray:
    """Values plus noise of that std, as multiples of the grid's step; unchanged for a std of 0."""
    if std == 0.0:
        return values
    bits = np.frombuffer(os.urandom(8 * values.size), np.uint64).reshape(values.shape)
    step = grid_step(std)
    whole = np.rint(values / step)
    rest = values - whole * step
    moved, doubtful = moved_by(bits, rest, std / step, step)
    for place in zip(*np.nonzero(doubtful), strict=True):
        moved[place] = exactly_moved(int(bits[place]), os.urandom(MORE_BYTES), float(rest[place]), std / step, step)
    return np.asarray((whole + moved) * step)


def moved_by(bits: np.ndarray, rest: np.ndarray, steps_per_std: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """By how many steps each value moves, and where that is in doubt.

    The upper bits say how probable a larger magnitude is, up to an interval; the lowest bit is the sign.
    """
    from scipy.special import ndtri

    tail = (bits >> np.uint64(12)).astype(np.float64)
    sign = np.where(bits & np.uint64(1), -1.0, 1.0)
    offset = rest / step
    ends = [offset + sign * steps_per_std * ndtri(0.5 * edge / INTERVALS) for edge in (tail, tail + 1.0)]
    low, high = np.rint(np.minimum(*ends) - DOUBT), np.rint(np.maximum(*ends) + DOUBT)
    return high, low != high


def exactly_moved(bits: int, more: bytes, rest: float, steps_per_std: float, step: float) -> float:
    """The same, with more random bits and in as many digits as it takes."""
    import mpmath

    with mpmath.workdps(DIGITS):
        fraction = mpmath.mpf(int.from_bytes(more, "big") * 2 + 1) / mpmath.mpf(2 ** (8 * len(more) + 1))
        tail = (mpmath.mpf(bits >> 12) + fraction) / mpmath.mpf(INTERVALS) / 2
        magnitude = _quantile(tail)
        noise = mpmath.mpf(steps_per_std) * (magnitude if bits & 1 else -magnitude)
        return float(mpmath.floor(mpmath.mpf(rest) / mpmath.mpf(step) + noise + mpmath.mpf(1) / 2))


def _quantile(tail: Any) -> Any:
    """The magnitude that a standard normal exceeds with that probability, by Newton's method from double precision."""
    import mpmath
    from scipy.special import ndtri_exp

    at = -mpmath.mpf(float(ndtri_exp(float(mpmath.log(tail)))))
    for _ in range(8):
        at += (mpmath.ncdf(-at) - tail) / mpmath.npdf(at)
    return at
