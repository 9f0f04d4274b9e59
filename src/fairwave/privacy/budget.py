"""How many steps or rounds a budget allows: fixed before the first, so that stopping in time proves the budget."""

from __future__ import annotations

import functools
import math

from fairwave.privacy.accounting import Kind, epsilon_of, gaussian_epsilon

MOST = 10**9
"""Releases at which nobody counts any more."""
CLOSE = 1e-3
"""Relative distance of the answer from the exact one, at most; it errs towards too few."""


@functools.cache
def most_releases(kind: Kind, max_epsilon: float, delta: float, lost_delta: float) -> int:
    """The most releases of one kind whose total stays within the budget, each of which also costs some delta."""

    def affordable(count: int) -> bool:
        return epsilon_of({kind: count}, delta - count * lost_delta) <= max_epsilon

    if not affordable(1):
        return 0
    low, high = 1, MOST
    step = max(2, _central_limit(kind, max_epsilon, delta))
    while high - low > max(1.0, CLOSE * low):
        # Gallop from where the limit theorem puts the answer; once it is enclosed, halve.
        middle = (low + high) // 2 if low > 1 and high < MOST else step
        if affordable(middle):
            low, step = middle, min(MOST, int(1.02 * middle) + 1)
        else:
            high, step = middle, max(2, int(middle / 1.02))
        if low >= MOST - 1:
            return MOST
    return low


def _central_limit(kind: Kind, max_epsilon: float, delta: float) -> int:
    """Releases by the Gaussian limit of many sampled ones (Bu, Dong, Long and Su 2020): a guess, not a bound."""
    multiplier, sampling = kind
    low, high = 1e-3, 1e3
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_epsilon(1.0 / middle, delta) <= max_epsilon else (low, middle)
    one = sampling**2 * math.expm1(min(50.0, multiplier**-2)) if sampling < 1.0 else multiplier**-2
    return int(min(MOST / 2, low**2 / one))
