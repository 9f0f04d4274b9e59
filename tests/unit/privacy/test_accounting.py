"""Epsilons against golden values, closed forms, and each other."""

from __future__ import annotations

import math
from collections import Counter

import dp_accounting
import dp_accounting.pld
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fairwave.privacy.accounting import (
    basic_composition,
    collapsed,
    epsilon_of,
    gaussian_epsilon,
    printed_strong_composition,
    renyi_epsilon,
    strong_composition,
)
from fairwave.privacy.gaussian import analytic_noise_multiplier, classical_noise_multiplier, noise_multiplier

DELTA = 1e-5
CLASSICAL = 5.099795013268831


def delta_of(multiplier: float, epsilon: float) -> float:
    """Balle and Wang's closed form, independent of the library."""
    mu = 1.0 / multiplier
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_golden_values_of_the_paper_setting():
    assert float(classical_noise_multiplier(jnp.asarray(0.95), DELTA)) == pytest.approx(CLASSICAL, rel=1e-14)
    assert float(analytic_noise_multiplier(jnp.asarray(0.95), DELTA)) == pytest.approx(3.909095654799099, rel=1e-9)
    assert gaussian_epsilon(CLASSICAL, DELTA) == pytest.approx(0.710013620621191, rel=1e-9)
    together = collapsed([CLASSICAL] * 200)
    assert 1 / together == pytest.approx(2.77307922905, rel=1e-10)
    assert gaussian_epsilon(together, DELTA) == pytest.approx(15.06926961097062, rel=1e-9)
    assert epsilon_of({(CLASSICAL, 1.0): 200}, DELTA) == pytest.approx(15.06926961097062, rel=1e-9)
    assert renyi_epsilon({(CLASSICAL, 1.0): 200}, DELTA) == pytest.approx(16.10687718059102, rel=1e-9)
    by_losses = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    by_losses.compose(dp_accounting.GaussianDpEvent(CLASSICAL), 200)
    assert by_losses.get_epsilon(DELTA) == pytest.approx(15.06926961, rel=2e-5)
    assert basic_composition(0.95, DELTA, 200) == (pytest.approx(190.0), pytest.approx(2e-3))
    assert strong_composition(0.95, DELTA, 200, DELTA)[0] == pytest.approx(365.753169302, rel=1e-9)
    assert printed_strong_composition(0.95, DELTA, 200) == (pytest.approx(45.5859, rel=1e-5), pytest.approx(2e-3))
    assert collapsed([CLASSICAL] * 10) == pytest.approx(1.61269678419, rel=1e-9)


@pytest.mark.parametrize(
    ("deviation", "multiplier", "one", "many"),
    [
        (0.0, 5.100, 0.710, 15.07),
        (0.25, 6.000, 0.594, 12.26),
        (0.5, 7.285, 0.481, 9.64),
        (0.75, 9.272, 0.370, 7.19),
        (1.0, 12.750, 0.261, 4.94),
    ],
)
def test_golden_values_by_deviation(deviation, multiplier, one, many):
    z = float(classical_noise_multiplier(jnp.asarray(0.95 * (1 - 0.6 * deviation)), DELTA))
    assert z == pytest.approx(multiplier, abs=6e-4)
    assert gaussian_epsilon(z, DELTA) == pytest.approx(one, abs=6e-4)
    assert gaussian_epsilon(collapsed([z] * 200), DELTA) == pytest.approx(many, abs=6e-3)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.3, 200.0), st.floats(1e-9, 1e-2))
def test_exact_epsilon_meets_its_delta(multiplier, delta):
    epsilon = gaussian_epsilon(multiplier, delta)
    if epsilon > 1e-6:
        assert delta_of(multiplier, epsilon) == pytest.approx(delta, rel=1e-4)
    assert delta_of(multiplier, epsilon + 1e-6) <= delta * (1 + 1e-4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 20.0), st.floats(1e-8, 1e-2))
def test_calibration_round_trips_and_never_overspends(epsilon, delta):
    multiplier = float(analytic_noise_multiplier(jnp.asarray(epsilon), delta))
    assert multiplier == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert gaussian_epsilon(multiplier, delta) == pytest.approx(epsilon, rel=1e-5)
    assert delta_of(multiplier * (1 + 1e-6), epsilon) <= delta * (1 + 1e-5)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(2.0, 50.0), min_size=1, max_size=12))
def test_exact_is_never_above_renyi(multipliers):
    exact = gaussian_epsilon(collapsed(multipliers), DELTA)
    releases = Counter((z, 1.0) for z in multipliers)
    assert epsilon_of(releases, DELTA) == pytest.approx(exact, rel=1e-9)
    assert exact <= renyi_epsilon(releases, DELTA) * (1 + 1e-9)


def test_sampling_agrees_with_the_published_value_and_lies_between():
    """Noise 1.5, rate 0.04, 2,250 steps: 7.32911 by Renyi divergences, 6.77740 by privacy loss distributions."""
    releases = {(1.5, 0.04): 2_250}
    assert renyi_epsilon(releases, 1e-5) == pytest.approx(7.32911, rel=2e-3)
    tight = epsilon_of(releases, 1e-5)
    assert tight == pytest.approx(6.77740, rel=5e-3) and tight < renyi_epsilon(releases, 1e-5)
    assert tight < epsilon_of({**releases, (40.0, 1.0): 10}, 1e-5) < tight + 1.0
    assert epsilon_of(releases, 0.0) == renyi_epsilon(releases, -1e-9) == math.inf


def test_no_noise_and_no_release():
    assert gaussian_epsilon(0.0, DELTA) == math.inf and gaussian_epsilon(math.inf, DELTA) == 0.0
    assert collapsed([]) == math.inf and collapsed([3.0, 0.0]) == 0.0


def test_what_would_take_gigabytes_is_bounded_instead():
    for releases in ({(0.1, 0.5): 1_000}, {(30.0, 1e-3): 20_000_000}):
        assert epsilon_of(releases, DELTA) == renyi_epsilon(releases, DELTA)


def test_calibrations_differ_as_they_should():
    """At epsilon 0.95 the analytic noise is 23 % less; both follow a vector of budgets, as deviations make them."""
    budgets = jnp.asarray([0.95, 0.38, 0.1])
    classical, analytic = (noise_multiplier(kind, budgets, DELTA) for kind in ("classical", "analytic"))
    assert (analytic < classical).all() and float(analytic[0] / classical[0]) == pytest.approx(0.7665, abs=1e-4)
    for epsilon in (1e-6, 1e-3, 30.0, 500.0):
        sigma = float(noise_multiplier("analytic", jnp.asarray(epsilon), DELTA))
        assert sigma == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, DELTA), rel=1e-5)
