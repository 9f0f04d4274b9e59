"""A privacy filter: how many more releases a budget pays for, whatever was released before and whoever chose it.

A budget is an (epsilon, delta) for all releases about the same records together. Two rules keep it, each with its own
share of delta; a release is allowed if either allows it. A third share pays for overfull batches and rounding: what all
releases together lose of delta may not exceed it, under either rule.

*One kind.* All releases so far, and the next, are of the kind that came first. Their number is at most the largest for
which tight accounting stays within the budget. That number follows from the first kind alone, before anything is
released, so that it does not matter on what the decision to stop depends.

*Any kinds.* The sum of the releases' Renyi divergences at one order stays within what the budget allows at that order.
The order follows from the budget and the first kind. Later kinds may be chosen by looking at earlier releases:
divergences of a fixed order add up all the same (Feldman and Zrnic 2021).

Together they keep the budget. A transcript is either all of the first kind, or not. The first sort is also produced by
a process that stops before its first release of another kind, to which the first rule applies. On the second sort the
second rule has held at every release, for its sum only grows, so that a process which stops when it fails produces
them too. Each sort is as likely, with and without a record, up to e^epsilon and its rule's share of delta; but for the
third share, all releases are what the accounting takes them for.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

from fairwave.privacy.accounting import Kind
from fairwave.privacy.budget import most_releases

SHARE_OF_MIXED, SHARE_OF_LOST = 2.0**-10, 2.0**-8
"""Shares of delta: for releases of several kinds, and for overfull batches and rounding. The rest is for one kind."""
ORDERS = range(2, 257)


@dataclasses.dataclass(frozen=True)
class Budget:
    """What all releases about the same records may cost together."""

    epsilon: float
    delta: float

    def allowance(
        self, releases: Mapping[Kind, int], lost_delta: float, first: Kind, kind: Kind, lost_each: float
    ) -> int:
        """How many more releases of a kind are allowed, after these; each may lose so much of delta beside."""
        loseable = self.delta * SHARE_OF_LOST - lost_delta
        if loseable < 0.0:
            return 0
        allowed = self._of_any_kinds(releases, first, kind)
        if kind == first and all(other == kind for other, count in releases.items() if count):
            allowed = max(allowed, self._of_one_kind(kind) - releases.get(kind, 0))
        return allowed if lost_each <= 0.0 else min(allowed, math.floor(loseable / lost_each))

    def _of_one_kind(self, kind: Kind) -> int:
        return most_releases(kind, self.epsilon, self.delta * (1.0 - SHARE_OF_MIXED - SHARE_OF_LOST), 0.0)

    def _of_any_kinds(self, releases: Mapping[Kind, int], first: Kind, kind: Kind) -> int:
        order, affordable = _order(self, first)
        spent = math.fsum(count * renyi_divergence(each, order) for each, count in releases.items())
        return max(0, math.floor((affordable * (1.0 - 1e-9) - spent) / renyi_divergence(kind, order)))


@functools.cache
def _order(budget: Budget, first: Kind) -> tuple[int, float]:
    """The order at which divergences add up, and what they may add up to: the best for releases of the first kind."""
    delta = budget.delta * SHARE_OF_MIXED

    def affordable(order: int) -> float:
        """Divergence that (epsilon, delta) allows (Canonne, Kamath and Steinke 2020, Proposition 12)."""
        return budget.epsilon - math.log1p(-1.0 / order) + math.log(delta * order) / (order - 1)

    order = max(ORDERS, key=lambda each: affordable(each) / renyi_divergence(first, each))
    return order, max(0.0, affordable(order))


@functools.cache
def renyi_divergence(kind: Kind, order: int) -> float:
    """Renyi divergence, of a whole order, of one Gaussian release on a Poisson sample.

    Mironov, Talwar and Zhang 2019, Section 3.3: exact for whole orders, and no smaller in the other direction.
    """
    multiplier, sampling = kind
    if multiplier <= 0.0:
        return math.inf
    if sampling >= 1.0:
        return order / (2.0 * multiplier**2)
    # The sum of all terms is 1 plus these, for the probabilities of a sample add up to 1. So summed, it keeps its
    # digits where it hardly differs from 1.
    logs = [
        math.lgamma(order + 1)
        - math.lgamma(k + 1)
        - math.lgamma(order - k + 1)
        + (order - k) * math.log1p(-sampling)
        + k * math.log(sampling)
        + _log_expm1(k * (k - 1) / (2.0 * multiplier**2))
        for k in range(2, order + 1)
    ]
    top = max(logs)
    beyond = top + math.log(math.fsum(math.exp(each - top) for each in logs))
    return (max(beyond, 0.0) + math.log1p(math.exp(-abs(beyond)))) / (order - 1)


def _log_expm1(value: float) -> float:
    """Logarithm of e^value - 1, for positive values of any size."""
    return value + math.log(-math.expm1(-value))
