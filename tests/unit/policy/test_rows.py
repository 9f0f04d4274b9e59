"""Lengths, cosines and projections of rows, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from fairwave.double_precision import double_precision
from fairwave.policy.rows import cosines, lengths, without_span


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_what_is_left_is_at_right_angles_to_all_directions(draw, count, scale):
    vector, directions = draw.normal(size=40), scale * draw.normal(size=(count, 40))
    with double_precision():
        rest = np.asarray(without_span(vector, tuple(directions)))
    expected = vector
    if count:
        expected = vector - directions.T @ np.linalg.lstsq(directions.T, vector, rcond=None)[0]
    np.testing.assert_allclose(rest, expected, atol=1e-10)


def test_a_direction_that_is_not_new_changes_nothing(draw):
    vector, one, other = draw.normal(size=(3, 40))
    with double_precision():
        twice = without_span(vector, (one, other, one - 2.0 * other, np.zeros(40)))
        np.testing.assert_allclose(twice, without_span(vector, (one, other)), atol=1e-10)


def test_lengths_and_cosines(draw):
    rows, others = draw.normal(size=(2, 6, 40))
    rows[0] = 0.0
    with double_precision():
        np.testing.assert_allclose(lengths(rows), np.linalg.norm(rows, axis=1), rtol=1e-12)
        found = np.asarray(cosines(rows, others))
    product = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
    np.testing.assert_allclose(found[1:], (rows * others).sum(axis=1)[1:] / product[1:], rtol=1e-10)
    assert found[0] == 0.0
