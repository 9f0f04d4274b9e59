"""Means over seeds with confidence intervals."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean, and where the true mean lies with `LEVEL` confidence; a single value gives no bounds (NaN)."""

    mean: float
    low: float
    high: float
    count: int


def interval(values: ArrayLike, least: float = -np.inf, most: float = np.inf) -> Interval:
    """Student's interval for the mean of independent values; those that are not finite are left out.

    Where values cannot be below `least`, or are between `least` and `most`, the interval is taken on the scale of the
    logarithm, or of the log-odds, around the mean (the delta method), so that it never leaves that range.
    """
    finite = np.asarray(values, dtype=np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if finite.size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    mean = float(finite.mean())
    if finite.size == 1:
        return Interval(mean, np.nan, np.nan, 1)
    from scipy.special import stdtrit  # scipy.stats has it too, and takes a second to import

    half = float(stdtrit(finite.size - 1, 0.5 + LEVEL / 2)) * float(finite.std(ddof=1)) / finite.size**0.5
    return Interval(mean, *_ends(mean, half, least, most), int(finite.size))


def _ends(mean: float, half: float, least: float, most: float) -> tuple[float, float]:
    """Both ends of an interval that is so wide to each side on the plain scale, in a range."""
    if np.isinf(least):
        return mean - half, mean + half
    if half == 0.0 or not least < mean < most:
        return mean, mean
    if np.isinf(most):
        factor = float(np.exp(half / (mean - least)))
        return least + (mean - least) / factor, least + (mean - least) * factor
    from scipy.special import expit, logit

    share = (mean - least) / (most - least)
    step = half / ((most - least) * share * (1.0 - share))
    low, high = expit(logit(share) + np.array([-step, step]))
    return least + (most - least) * float(low), least + (most - least) * float(high)


def change_interval(new: ArrayLike, base: ArrayLike) -> Interval:
    """Change of one positive quantity against another in per cent, pair by pair.

    The interval is Student's for the logarithm of the ratio, so that it never reaches below -100 %; the mean is the
    geometric one.
    """
    new, base = np.asarray(new, dtype=np.float64), np.asarray(base, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = interval(np.log(new / base))
    low, mean, high = (100.0 * float(np.expm1(value)) for value in (logs.low, logs.mean, logs.high))
    return Interval(mean, low, high, logs.count)
