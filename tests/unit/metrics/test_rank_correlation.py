"""Rank correlation against scipy's, ties and gaps included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from fairwave.metrics.rank_correlation import rank_correlation


@pytest.mark.parametrize("levels", [1000, 4])
def test_it_is_spearmans(levels: int):
    draw = np.random.default_rng(levels)
    one, other = draw.integers(0, levels, 20), draw.integers(0, levels, 20)
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)


def test_any_rising_function_keeps_it_and_a_falling_one_turns_it():
    values = np.random.default_rng(0).normal(size=9)
    assert rank_correlation(values, np.exp(values)) == pytest.approx(1.0)
    assert rank_correlation(values, -(values**3)) == pytest.approx(-1.0)


def test_unknown_values_are_left_out_and_equal_ones_have_no_order():
    assert rank_correlation([1.0, np.nan, 2.0, 3.0], [1.0, 5.0, 2.0, 3.0]) == pytest.approx(1.0)
    assert np.isnan(rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
