"""The paper's cell, to the digits that can be worked out from its table.

Source of the numbers: an independent NumPy computation of the paper's equations with the readings of
docs/equations.md (no fading: r = 50 and 200 m; fading: 6,000 draws of a Rayleigh amplitude of scale 1).
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import fairwave
from fairwave.extensions import RULES
from fairwave.planner.summary import energy_fairness


@pytest.fixture(scope="module")
def still() -> xr.Dataset:
    return fairwave.plan("paper", RULES, fading=False)


@pytest.fixture(scope="module")
def faded() -> xr.Dataset:
    return fairwave.plan("paper", RULES, draws=6_000)


def ends(plan: xr.Dataset, policy: str, variable: str) -> np.ndarray:
    return plan[variable].sel(policy=policy).values[[0, -1]]


@pytest.mark.parametrize(
    ("policy", "rate_mbps", "iterations", "energy_mj"),
    [
        ("max_power", (5.79, 3.79), (99.5, 86.2), (406, 582)),
        ("proposed", (5.55, 3.37), (98.4, 81.5), (250.3, 250.8)),
    ],
)
def test_regression_values_without_fading(still, policy, rate_mbps, iterations, energy_mj):
    digits = 0 if policy == "max_power" else 1
    assert np.round(ends(still, policy, "uplink_rate_bps") / 1e6, 2).tolist() == list(rate_mbps)
    assert np.round(ends(still, policy, "optimal_iterations"), 1).tolist() == list(iterations)
    assert np.round(ends(still, policy, "optimal_energy_j") * 1e3, digits).tolist() == list(energy_mj)


@pytest.mark.parametrize(
    ("policy", "energy_mj", "mean_mj", "std_mj", "iterations", "rate_mbps"),
    [
        ("max_power", (406, 586), 502, 57, (99.4, 85.9), (5.83, 3.83)),
        ("amplifier_cap", (229, 322), 278, 29, (98.1, 82.6), (5.54, 3.54)),
        ("priced", (196, 376), 286, 57, (97.7, 83.6), (5.44, 3.61)),
        ("equal_energy", (250, 251), 250, 0.4, (98.4, 80.7), (5.60, 3.42)),
        ("proposed", (250.2, 251.6), 250.8, 0.50, (98.3, 80.6), (5.59, 3.41)),
    ],
)
def test_rules_with_fading(faded, policy, energy_mj, mean_mj, std_mj, iterations, rate_mbps):
    """Within 5 standard errors of two samples of 6,000 draws: 1.5 mJ, 0.15 iterations, 0.04 Mbit/s."""
    energy = faded["optimal_energy_j"].sel(policy=policy).values * 1e3
    np.testing.assert_allclose(energy[[0, -1]], energy_mj, atol=1.5)
    np.testing.assert_allclose(energy.mean(), mean_mj, atol=1.5)
    np.testing.assert_allclose(energy.std(), std_mj, atol=0.4 if std_mj < 1 else 1.5)
    np.testing.assert_allclose(ends(faded, policy, "optimal_iterations"), iterations, atol=0.3)
    np.testing.assert_allclose(ends(faded, policy, "uplink_rate_bps") / 1e6, rate_mbps, atol=0.04)


@pytest.mark.parametrize("plan", ["still", "faded"])
def test_energy_spread_is_cut_by_98_percent(plan, request):
    fairness = energy_fairness(request.getfixturevalue(plan))
    assert fairness["proposed"]["std"] <= 0.02 * fairness["max_power"]["std"]


def test_trends_of_figures_2_to_4(faded):
    """Benchmark energy climbs with distance and the proposed stays flat; iterations and rate fall for both."""
    for policy in ("proposed", "max_power"):
        one = faded.sel(policy=policy)
        for name in ("compute_energy_j", "local_iterations", "uplink_rate_bps"):
            assert (np.diff(one[name].values) < 0).all()
        assert (np.diff(one["transmit_energy_j"].values) > 0).all()
    benchmark, proposed = (faded["energy_j"].sel(policy=p).values for p in ("max_power", "proposed"))
    assert (np.diff(benchmark) > 0).all()
    assert proposed.max() / proposed.min() < 1.02
    drop = faded["compute_energy_j"].values[:, 0] - faded["compute_energy_j"].values[:, -1]
    by_policy = dict(zip(faded["policy"].values, drop, strict=True))
    assert by_policy["proposed"] > by_policy["max_power"]


def test_mean_cut_against_the_priced_rule_is_the_paper_headline(faded):
    """The price is calibrated to the paper's 12.17 %; this guards the calibration, and is no evidence for the rule."""
    mean = faded["optimal_energy_j"].mean("device")
    assert float(1 - mean.sel(policy="proposed") / mean.sel(policy="priced")) == pytest.approx(0.1217, abs=0.006)


def test_deep_fades_are_outages(faded):
    """Chance that |h|^2 (exponential, mean 2) is below what full power needs: 4.5e-4 at 200 m by the closed form."""
    device = 9
    payload_rate = 875e3 / (0.75 - 10 * 802_816 * 7.5e-9)
    snr = (2 ** (payload_rate / 250e3) - 1) * 10**0.98
    needed = snr * 10**-20.4 * 250e3 * 200**4 / (299_792_458 / (4 * np.pi * 32e6)) ** 2
    expected = 1 - np.exp(-needed / 2)
    observed = float(faded["outage_fraction"].sel(policy="max_power")[device])
    assert expected == pytest.approx(4.5e-4, rel=0.1)
    assert abs(observed - expected) <= 5 * np.sqrt(expected / 6_000)
