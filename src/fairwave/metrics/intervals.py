"""Means over seeds with confidence intervals."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean, and where the true mean lies with `LEVEL` confidence; no bounds from a single value."""

    mean: float
    half_width: float
    count: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width


def interval(values: ArrayLike) -> Interval:
    """Student's interval for the mean of independent values; those that are not finite are left out."""
    from scipy.stats import t

    finite = np.asarray(values, dtype=np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if finite.size == 0:
        return Interval(float("nan"), float("nan"), 0)
    if finite.size == 1:
        return Interval(float(finite[0]), float("nan"), 1)
    spread = float(finite.std(ddof=1)) / finite.size**0.5
    return Interval(float(finite.mean()), float(t.ppf(0.5 + LEVEL / 2, finite.size - 1)) * spread, int(finite.size))
