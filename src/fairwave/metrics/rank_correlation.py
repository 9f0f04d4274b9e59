"""Whether two numbers of every device put devices in the same order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairwave.metrics.fairness import reward_correlation


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's rank correlation: 1 for the same order, -1 for the reverse; NaN if either is the same for all.

    Devices without a finite value in both are left out; equal values share their mean rank.
    """
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    known = np.isfinite(first) & np.isfinite(second)
    return reward_correlation(_ranks(first[known]), _ranks(second[known]))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from the smallest, the mean rank for equal values."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: np.ndarray = (last - 0.5 * (counts - 1))[which]
    return ranks
