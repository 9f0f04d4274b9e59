"""How evenly a cost is spread over devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

WORST = 0.1


def worst_share(values: ArrayLike, share: float = WORST) -> float:
    """Mean of the largest values, such as the losses of the tenth of devices that fare worst; at least one counts."""
    known = np.asarray(values, dtype=np.float64)
    known = np.sort(known[np.isfinite(known)])
    count = max(1, int(np.ceil(share * known.size - 1e-9)))
    return float(known[-count:].mean()) if known.size else float("nan")


def reward_correlation(contribution: ArrayLike, reward: ArrayLike) -> float:
    """Pearson correlation of what devices gave and got; NaN if either is the same for all."""
    gave, got = np.asarray(contribution, dtype=np.float64), np.asarray(reward, dtype=np.float64)
    known = np.isfinite(gave) & np.isfinite(got)
    if known.sum() < 2 or np.ptp(gave[known]) == 0.0 or np.ptp(got[known]) == 0.0:
        return float("nan")
    return float(np.corrcoef(gave[known], got[known])[0, 1])


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
