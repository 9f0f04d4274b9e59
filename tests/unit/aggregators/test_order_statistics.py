"""Order statistics without sorting, beside NumPy's sort."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.aggregators.order_statistics import BLOCK, mean_between, mean_of_nearest, median, of_rank
from fairwave.double_precision import double_precision

ROWS = 9


def values(kind: str) -> np.ndarray:
    draw = np.random.default_rng(3)
    few = draw.integers(-2, 3, (ROWS, 60))  # many equal values, and zeros of both signs
    many = draw.normal(size=(ROWS, 60)) * 10.0 ** draw.integers(-30, 30, (ROWS, 60))
    signed = few * draw.choice([-1.0, 1.0], (ROWS, 60))
    return np.concatenate([few, many, signed], axis=1).astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 5, 8, 9])
def test_as_numpy_sorts(kind, count):
    with double_precision():
        rows, counted = values(kind), np.random.default_rng(count).permutation(ROWS) < count
        ordered = np.sort(rows[counted], axis=0)
        some, mask = jnp.asarray(rows), jnp.asarray(counted)
        for rank in range(count):
            np.testing.assert_array_equal(jax.jit(of_rank)(some, mask, rank), ordered[rank])
        np.testing.assert_allclose(median(some, mask), np.median(rows[counted], axis=0), rtol=1e-6)
        for left_out in range((count + 1) // 2):
            expected = ordered[left_out : count - left_out].mean(axis=0, dtype=np.float64)
            largest = np.abs(ordered).max(axis=0)
            found = np.asarray(mean_between(some, mask, left_out), np.float64)
            assert (np.abs(found - expected) <= 1e-6 * largest).all()


def test_nothing_counts_as_zero():
    rows, nobody = jnp.asarray(values("float32")), jnp.zeros(ROWS, bool)
    assert (median(rows, nobody) == 0.0).all() and (mean_between(rows, nobody, 0) == 0.0).all()


def test_rows_nearest_to_a_centre_are_averaged_and_ties_share_the_last_places():
    rows = np.array([[1.0], [-2.0], [4.0], [8.0], [1.0]], np.float32)
    counted, centre = np.array([True, True, True, True, False]), jnp.ones(1, np.float32)
    for used, expected in ((1, 1.0), (2, (1.0 + 1.0) / 2.0), (3, 3.0 / 3.0), (4, 11.0 / 4.0)):
        found = mean_of_nearest(jnp.asarray(rows), jnp.asarray(counted), centre, used)
        assert float(found[0]) == pytest.approx(expected)


def test_more_rows_than_short_integers_can_count():
    rows = np.random.default_rng(2).normal(size=(40_000, 3)).astype(np.float32)
    found = jax.jit(of_rank)(jnp.asarray(rows), jnp.ones(40_000, bool), jnp.asarray(36_000))
    np.testing.assert_array_equal(found, np.sort(rows, axis=0)[36_000])


@pytest.mark.parametrize("width", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 7])
def test_blocks_fit_together(width):
    rows = np.random.default_rng(1).normal(size=(5, width)).astype(np.float32)
    found = median(jnp.asarray(rows), jnp.ones(5, bool))
    np.testing.assert_array_equal(found, np.sort(rows, axis=0)[2])
