"""What releases cost: epsilon at delta, from noise multipliers alone.

A noise multiplier is the std of the noise over a proven sensitivity. Unsampled Gaussian releases compose exactly: many
are one with a smaller multiplier (Gaussian differential privacy; Dong, Roth and Su). Releases on random samples need
dp-accounting's privacy loss distributions, with Renyi divergences as a check from above.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

GRID = 1e-3
"""Discretisation of privacy losses; the result errs upwards."""

HOPELESS, MANY = 200.0, 10_000_000

Kind: TypeAlias = tuple[float, float]
"""Noise multiplier, and the probability with which a record is in the release."""
Releases: TypeAlias = Mapping[Kind, int]
"""How many of each kind."""


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


def epsilon_of(releases: Releases, delta: float) -> float:
    """Epsilon of all these releases together, never below the truth.

    Exact where every record is in every release; else by privacy loss distributions, tight up to their grid. Where
    these would take gigabytes or hours, for totals that protect nobody or millions of releases, by Renyi divergences.
    """
    if delta <= 0.0:
        return math.inf
    if all(sampling >= 1.0 for _, sampling in releases):
        weighted = math.fsum(count / (z * z) if z > 0.0 else math.inf for (z, _), count in releases.items())
        return gaussian_epsilon(1.0 / math.sqrt(weighted) if weighted > 0.0 else math.inf, delta)
    bound = renyi_epsilon(releases, delta)
    if bound > HOPELESS or sum(releases.values()) > MANY:
        return bound
    return _by_loss_distribution(frozenset(releases.items()), delta)


def renyi_epsilon(releases: Releases, delta: float) -> float:
    """A cross-check from above, by Renyi divergences."""
    import dp_accounting.rdp

    if delta <= 0.0:
        return math.inf
    accountant = dp_accounting.rdp.RdpAccountant()
    with _quietly():
        for event, count in _events(releases.items()):
            accountant.compose(event, count)
        return float(accountant.get_epsilon(delta))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the warning that an order was left out of a minimum over many, which only makes the bound larger."""
    from absl import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


@functools.cache
def _by_loss_distribution(releases: frozenset[tuple[Kind, int]], delta: float) -> float:
    import dp_accounting.pld

    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=GRID)
    for event, count in _events(sorted(releases)):
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def _events(releases: Iterable[tuple[Kind, int]]) -> Iterator[tuple[Any, int]]:
    import dp_accounting

    for (multiplier, sampling), count in releases:
        event = dp_accounting.GaussianDpEvent(multiplier)
        yield (dp_accounting.PoissonSampledDpEvent(sampling, event) if sampling < 1.0 else event), count


def basic_composition(epsilon: float, delta: float, rounds: int) -> tuple[float, float]:
    """What the paper quotes: budgets simply add up. Returns epsilon and delta."""
    return rounds * epsilon, rounds * delta


def printed_strong_composition(epsilon: float, delta: float, rounds: int) -> tuple[float, float]:
    """Strong composition as the paper prints it, which is no theorem. Returns epsilon and delta.

    It lacks a factor sqrt(2), the second term, and the slack in delta. For Gaussian releases less can be proved; for
    releases of which only epsilon and delta are known, this cannot.
    """
    return epsilon * math.sqrt(rounds * math.log(1.0 / delta)), rounds * delta


def strong_composition(epsilon: float, delta: float, rounds: int, slack: float) -> tuple[float, float]:
    """Dwork and Roth, Theorem 3.20, with its second term, which the paper leaves out. Returns epsilon and delta."""
    first = math.sqrt(2.0 * rounds * math.log(1.0 / slack)) * epsilon
    return first + rounds * epsilon * math.expm1(epsilon), rounds * delta + slack
