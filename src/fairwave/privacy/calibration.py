"""The least noise for a budget: the inverse of the account of many sampled releases."""

from __future__ import annotations

import math

from fairwave.privacy.accounting import epsilon_of

DIGITS = 3
"""Significant digits of a proposed multiplier, rounded up."""
CLOSE = 1.002
"""Ratio of the two multipliers between which the search ends."""


def least_multiplier(sampling: float, steps: int, epsilon: float, delta: float) -> float:
    """The least noise multiplier with which so many steps stay within the budget, rounded up to three digits.

    `delta` is what is left of it for the noise, once what overflowing batches and rounding cost is taken off.
    """

    def affordable(multiplier: float) -> bool:
        return epsilon_of({(multiplier, sampling): steps}, delta) <= epsilon

    high = 1.0
    while not affordable(high):
        high *= 2.0
    low = high / 2.0
    while affordable(low):
        high, low = low, low / 2.0
    while high / low > CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if affordable(middle) else (middle, high)
    scale = 10.0 ** (DIGITS - 1 - math.floor(math.log10(high)))
    return math.ceil(high * scale) / scale
