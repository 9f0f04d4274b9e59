from __future__ import annotations

import numpy as np
import pytest

from fairwave.metrics.fairness import fairness_summary


def test_equal_cost_is_fair():
    assert fairness_summary([2.0, 2.0, 2.0]) == {
        "mean": 2.0,
        "std": 0.0,
        "cv": 0.0,
        "max_min": 1.0,
        "jain": 1.0,
        "gini": 0.0,
    }


def test_by_hand():
    """1, 3: mean 2, std 1, Jain 4^2 / (2 * 10) = 0.8, Gini = mean |difference| / (2 mean) = (2 * 2 / 4) / 4 = 0.25."""
    summary = fairness_summary([3.0, 1.0])
    assert (summary["std"], summary["cv"], summary["max_min"]) == (1.0, 0.5, 3.0)
    assert summary["jain"] == pytest.approx(0.8)
    assert summary["gini"] == pytest.approx(0.25)


def test_gini_is_the_mean_difference():
    values = np.random.default_rng(0).exponential(size=200)
    direct = np.abs(values[:, None] - values).mean() / (2 * values.mean())
    assert fairness_summary(values)["gini"] == pytest.approx(direct)


def test_devices_without_a_value_are_left_out():
    assert fairness_summary([1.0, np.nan, 3.0]) == fairness_summary([1.0, 3.0])
    assert all(np.isnan(value) for value in fairness_summary([np.nan]).values())
