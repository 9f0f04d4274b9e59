"""How evenly a cost is spread over devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def fairness_summary(values: ArrayLike) -> dict[str, float]:
    """Mean, std, coefficient of variation, max/min, Jain's index and Gini coefficient of a positive cost.

    Jain's index is 1 and Gini's is 0 when all pay the same. Neither moves much while the spread is small, so the
    plain std and max/min stand beside them. Devices without a finite value (always in outage) are left out.
    """
    cost = np.asarray(values, dtype=np.float64)
    cost = np.sort(cost[np.isfinite(cost)])
    if cost.size == 0:
        return dict.fromkeys(("mean", "std", "cv", "max_min", "jain", "gini"), float("nan"))
    mean, std = float(cost.mean()), float(cost.std())
    rank = np.arange(1, cost.size + 1)
    return {
        "mean": mean,
        "std": std,
        "cv": std / mean,
        "max_min": float(cost[-1] / cost[0]),
        "jain": float(mean**2 / np.mean(cost**2)),
        "gini": float(np.sum((2 * rank - cost.size - 1) * cost) / (cost.size**2 * mean)),
    }
