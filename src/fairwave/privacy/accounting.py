"""What releases cost: epsilon at delta, from noise multipliers alone.

A noise multiplier is the std of the noise over a proven sensitivity. Unsampled Gaussian releases compose exactly: many
are one with a smaller multiplier (Gaussian differential privacy; Dong, Roth and Su). Releases on random samples need
dp-accounting's privacy loss distributions, with Renyi divergences as a check from above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

GRID = 1e-3
"""Discretisation of privacy losses; the result errs upwards."""


def collapsed(multipliers: Iterable[float]) -> float:
    """The one multiplier that costs what all these releases cost together; infinite for none."""
    precision = math.fsum(1.0 / (z * z) if z > 0.0 else math.inf for z in multipliers)
    return 1.0 / math.sqrt(precision) if precision > 0.0 else math.inf


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """Exact epsilon of one Gaussian release (Balle and Wang)."""
    import dp_accounting

    if multiplier <= 0.0:
        return math.inf
    if math.isinf(multiplier):
        return 0.0
    return float(dp_accounting.get_epsilon_gaussian(multiplier, delta))


def analytic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Least noise multiplier of one (epsilon, delta) release, for any epsilon (Balle and Wang)."""
    import dp_accounting

    return float(dp_accounting.get_sigma_gaussian(epsilon, delta))


def renyi_epsilon(multipliers: Mapping[float, int], delta: float, sampling: float = 1.0) -> float:
    """Upper bound by Renyi divergences: so many releases at each multiplier, each on a random share of the records."""
    import dp_accounting.rdp

    accountant = dp_accounting.rdp.RdpAccountant()
    for event, count in _events(multipliers, sampling):
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def sampled_epsilon(multipliers: Mapping[float, int], delta: float, sampling: float = 1.0) -> float:
    """Epsilon by privacy loss distributions, tight up to the grid and never below the truth."""
    import dp_accounting.pld

    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=GRID)
    for event, count in _events(multipliers, sampling):
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def _events(multipliers: Mapping[float, int], sampling: float) -> Iterator[tuple[Any, int]]:
    import dp_accounting

    for multiplier, count in multipliers.items():
        event = dp_accounting.GaussianDpEvent(multiplier)
        yield (dp_accounting.PoissonSampledDpEvent(sampling, event) if sampling < 1.0 else event), count


def basic_composition(epsilon: float, delta: float, rounds: int) -> tuple[float, float]:
    """What the paper quotes: budgets simply add up. Returns epsilon and delta."""
    return rounds * epsilon, rounds * delta


def strong_composition(epsilon: float, delta: float, rounds: int, slack: float) -> tuple[float, float]:
    """Dwork and Roth, Theorem 3.20, with its second term, which the paper leaves out. Returns epsilon and delta."""
    first = math.sqrt(2.0 * rounds * math.log(1.0 / slack)) * epsilon
    return first + rounds * epsilon * math.expm1(epsilon), rounds * delta + slack
