"""Gaussian noise fit for deployment: the operating system's randomness, double precision, the result on a grid.

Single-precision noise has holes: an observer rules out every candidate from which the released value cannot be
reached. Here each released value is a multiple of a power of two that follows from the public std alone, and every
multiple can be reached from everywhere. The value is split into its nearest multiple and the rest, so that noise is
added to a small number and rounding errors do not depend on how large the value is.

Random bits name an interval of probability. Where all of it leads to the same multiple, and no rounding error could
change that, the multiple is clear. For all but two values in a thousand 16 bits and a table make it so; for the others
32 more bits and the quantile in double precision; and where even these leave doubt, more bits and more digits decide.
"""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import numpy as np

PER_STD = 8
"""At least so many grid steps to one std; rounding then adds at most 1/768 to the variance."""
TAIL_BITS, FINE_BITS = 15, 32
"""Bits of the magnitude's tail probability, from 0 to 1/2: those drawn for every value, with one for the sign, and
those drawn where the first leave doubt."""
HALF_WIDTH = 0.65
"""Between the tail probabilities k and k + 1, in any unit, the magnitude differs by at most 0.65 / k from that in the
middle: the normal density is at least sqrt(2 / pi) times the tail probability, and 0.5 / sqrt(2 / pi) is 0.63."""
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
    step = grid_step(std)
    scaled = values / step  # exact: the step is a power of two
    whole = np.rint(scaled)
    return np.asarray((whole + _moved(scaled - whole, std / step)) * step)


def _moved(rest: np.ndarray, steps_per_std: float) -> np.ndarray:
    """By how many steps each value moves; a rest is what a value has beyond its nearest multiple, in steps."""
    bits = np.frombuffer(os.urandom(2 * rest.size), np.uint16).reshape(rest.shape)
    moved, doubtful = moved_by_table(bits, rest, steps_per_std)
    bits, rest, fine = bits[doubtful], rest[doubtful], np.frombuffer(os.urandom(4 * doubtful.sum()), np.uint32)
    finer, in_doubt = moved_by_quantile(bits, fine, rest, steps_per_std)
    for place in np.flatnonzero(in_doubt):
        more = os.urandom(MORE_BYTES)
        finer[place] = exactly_moved(int(bits[place]), int(fine[place]), more, float(rest[place]), steps_per_std)
    moved[doubtful] = finer
    return moved


def moved_by_table(bits: np.ndarray, rest: np.ndarray, steps_per_std: float) -> tuple[np.ndarray, np.ndarray]:
    """By how many steps each value moves, and where that is in doubt, from 16 bits each.

    They are the number of an interval of probability, from minus to plus infinity. The two outermost are always in
    doubt.
    """
    edges, number = _edges(), bits.astype(np.int32)
    low = np.rint(rest + steps_per_std * edges[number] - DOUBT)
    high = np.rint(rest + steps_per_std * edges[number + 1] + DOUBT)
    return high, low != high


def moved_by_quantile(
    bits: np.ndarray, fine: np.ndarray, rest: np.ndarray, steps_per_std: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same, from 32 more bits each, which divide the interval."""
    from scipy.special import ndtri

    negative = bits < 2**TAIL_BITS
    tail = np.where(negative, bits, 2 ** (TAIL_BITS + 1) - 1 - bits.astype(np.int64)) * 2.0**FINE_BITS + fine
    magnitude = -ndtri((tail + 0.5) * 2.0 ** -(TAIL_BITS + FINE_BITS + 1))
    middle = rest + np.where(negative, -steps_per_std, steps_per_std) * magnitude
    with np.errstate(divide="ignore"):
        reach = DOUBT + (HALF_WIDTH * steps_per_std) / tail
    low, high = np.rint(middle - reach), np.rint(middle + reach)
    return high, low != high


def exactly_moved(bits: int, fine: int, more: bytes, rest: float, steps_per_std: float) -> float:
    """The same, with still more random bits and in as many digits as it takes."""
    import mpmath

    negative = bits < 2**TAIL_BITS
    tail = bits if negative else 2 ** (TAIL_BITS + 1) - 1 - bits
    with mpmath.workdps(DIGITS):
        last = mpmath.mpf(int.from_bytes(more, "big") * 2 + 1) / mpmath.mpf(2 ** (8 * len(more) + 1))
        magnitude = _quantile((mpmath.mpf(tail * 2**FINE_BITS + fine) + last) / 2 ** (TAIL_BITS + FINE_BITS + 1))
        noise = mpmath.mpf(steps_per_std) * (-magnitude if negative else magnitude)
        return float(mpmath.floor(mpmath.mpf(rest) + noise + mpmath.mpf(1) / 2))


@functools.cache
def _edges() -> np.ndarray:
    """The quantiles that divide the normal law into 2^16 intervals of equal probability."""
    from scipy.special import ndtri

    half = ndtri(np.arange(2**TAIL_BITS) * 2.0 ** -(TAIL_BITS + 1))
    return np.concatenate([half, [0.0], -half[::-1]])


def _quantile(tail: Any) -> Any:
    """The magnitude that a standard normal exceeds with that probability, by Newton's method from double precision."""
    import mpmath
    from scipy.special import ndtri_exp

    at = -mpmath.mpf(float(ndtri_exp(float(mpmath.log(tail)))))
    for _ in range(8):
        at += (mpmath.ncdf(-at) - tail) / mpmath.npdf(at)
    return at
