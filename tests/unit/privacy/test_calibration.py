"""The least noise for a budget, against the account that it inverts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.calibration import least_multiplier


@pytest.mark.parametrize(("sampling", "steps", "epsilon"), [(128 / 6_000, 2_200, 8.0), (0.1, 300, 1.0), (1.0, 40, 3.0)])
def test_the_multiplier_keeps_the_budget_and_one_percent_less_does_not(sampling, steps, epsilon):
    found = least_multiplier(sampling, steps, epsilon, 1e-5)
    assert epsilon_of({(found, sampling): steps}, 1e-5) <= epsilon
    assert epsilon_of({(0.985 * found, sampling): steps}, 1e-5) > epsilon


def test_without_sampling_it_is_the_gaussian_mechanisms():
    """Forty releases on all records collapse into one, sqrt(40) times less noisy, whose least multiplier solves
    the exact condition of Balle and Wang (2018)."""

    def excess(multiplier: float) -> float:
        shift = 0.5 / multiplier
        return norm.cdf(shift - 8.0 * multiplier) - np.exp(8.0) * norm.cdf(-shift - 8.0 * multiplier) - 1e-5

    exact = brentq(excess, 0.3, 5.0)
    assert exact <= least_multiplier(1.0, 40, 8.0, 1e-5) / 40**0.5 <= 1.01 * exact
