"""How many steps or rounds a budget allows: fixed before the first, so that stopping in time proves the budget."""

from __future__ import annotations

import functools

from fairwave.privacy.accounting import Kind, epsilon_of

MOST = 10**9
"""Releases at which nobody counts any more."""


@functools.cache
def most_releases(kind: Kind, max_epsilon: float, delta: float, lost_delta: float) -> int:
    """The most releases of one kind whose total stays within the budget, each of which also costs some delta."""

    def affordable(count: int) -> bool:
        return epsilon_of({kind: count}, delta - count * lost_delta) <= max_epsilon

    if not affordable(1):
        return 0
    low, high = 1, 2
    while affordable(high):
        low, high = high, 2 * high
        if low >= MOST:
            return MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low
