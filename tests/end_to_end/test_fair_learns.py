"""The recommended preset learns within its privacy budget."""

from __future__ import annotations

import numpy as np
import pytest

import fairwave
from fairwave.privacy.accounting import epsilon_of


@pytest.mark.slow
def test_ninety_per_cent_at_record_level_epsilon_eight():
    scenario = fairwave.load_scenario("fair")
    assert (scenario.privacy.max_epsilon, scenario.privacy.delta) == (8.0, 1e-5)
    results = fairwave.simulate(scenario, ["proposed"]).results.isel(scheme=0, seed=0)
    assert float(results["test_accuracy"][-1]) >= 0.90
    assert float(results["noise_std"].min()) > 0.03  # fairness noise was on
    steps = int(results["local_iterations"].sum("round").max())
    kind = (scenario.privacy.noise_multiplier, scenario.learning.batch_size / 6_000)
    assert 7.0 < epsilon_of({kind: steps}, 1e-5) <= 8.0
    assert np.abs(results["membership_auc"] - 0.5).max() < 0.02
