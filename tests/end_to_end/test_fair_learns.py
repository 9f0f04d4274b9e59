"""The recommended presets learn within their privacy budgets."""

from __future__ import annotations

import numpy as np
import pytest

import fairwave
from fairwave.privacy.accounting import epsilon_of

NINETY_SEVEN = ("fair", 0.97, 0.3)
NINETY = ("fair-mlp", 0.90, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "accuracy", "least_noise"), [NINETY_SEVEN, NINETY])
def test_accuracy_at_record_level_epsilon_eight(preset, accuracy, least_noise):
    """Seed 0, fairness noise and defences on. In the mean of the last rounds: single ones scatter by a few tenths."""
    scenario = fairwave.load_scenario(preset, ["run.evaluate_every=5"])
    assert (scenario.privacy.max_epsilon, scenario.privacy.delta) == (8.0, 1e-5)
    results = fairwave.simulate(scenario, ["proposed"]).results.isel(scheme=0, seed=0)
    assert float(results["test_accuracy"].dropna("round")[-3:].mean()) >= accuracy
    assert float(results["noise_std"].min()) > least_noise  # fairness noise was on
    steps = int(results["local_iterations"].sum("round").max())
    kind = (scenario.privacy.noise_multiplier, scenario.learning.batch_size / 6_000)
    assert 7.0 < epsilon_of({kind: steps}, 1e-5) <= 8.0
    assert np.abs(results["membership_auc"].dropna("round") - 0.5).max() < 0.02
    assert float(results["energy_j"].mean("round").std("device")) < 0.02 * float(results["energy_j"].mean())
