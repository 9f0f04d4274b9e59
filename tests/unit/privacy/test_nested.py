"""Nested copies: marginals as before, and no coalition beats its least-noisy member."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.privacy.nested import nested

LENGTH = 109_386
LEVELS = np.array([5.1, 6.0, 5.1, 9.3, 12.7, 7.3, 5.5, 5.1, 8.0, 10.0])


def noise(kind: str, levels: np.ndarray = LEVELS, seed: int = 0) -> np.ndarray:
    draws = jax.random.normal(jax.random.key(seed), (levels.size, LENGTH), jnp.float32)
    standard = nested(jnp.asarray(levels), draws) if kind == "nested" else draws
    return np.asarray(standard, np.float64) * levels[:, None]


def covariance_by_design(levels: np.ndarray) -> np.ndarray:
    """Read off the map from draws to noise: the identity matrix goes in, its square comes out."""
    factor = np.asarray(nested(jnp.asarray(levels), jnp.eye(levels.size)), np.float64) * levels[:, None]
    return factor @ factor.T


def test_the_map_has_the_covariance_of_a_brownian_motion():
    np.testing.assert_allclose(covariance_by_design(LEVELS), np.minimum.outer(LEVELS, LEVELS) ** 2, rtol=1e-12)


def test_every_coalition_knows_what_its_least_noisy_member_knows():
    """Variance of the best linear unbiased estimate, for all 1,023 coalitions of ten."""
    levels = np.linspace(5.1, 12.75, 10)  # distinct, so that the covariance can be inverted
    covariance = covariance_by_design(levels)
    count = 0
    for size in range(1, 11):
        for members in itertools.combinations(range(10), size):
            part = covariance[np.ix_(members, members)]
            variance = 1.0 / np.sum(np.linalg.inv(part))
            assert abs(variance / min(levels[list(members)]) ** 2 - 1) < 1e-10
            count += 1
    assert count == 1_023


def gram_in_standard_errors(sample: np.ndarray, levels: np.ndarray) -> float:
    """Largest distance of the empirical covariance from the nested one, in standard errors."""
    expected = np.minimum.outer(levels, levels) ** 2
    error = np.sqrt((np.outer(levels, levels) ** 2 + expected**2) / LENGTH)
    return float(np.max(np.abs(sample @ sample.T / LENGTH - expected) / error))


@pytest.mark.statistical
def test_sampled_covariance():
    """Fixed key. 55 entries within 6 standard errors: false alarm below 2e-7. Independent noise is off by hundreds."""
    assert gram_in_standard_errors(noise("nested"), LEVELS) < 6.0
    assert gram_in_standard_errors(noise("independent"), LEVELS) > 50.0


@pytest.mark.statistical
def test_marginals_are_unchanged():
    """Fixed key. Std of 109,386 draws has a relative error of 0.21 %; 6 sigma: false alarm below 2e-8 for ten. A scale
    error of 2 % is rejected."""
    relative = noise("nested").std(axis=1) / LEVELS - 1
    assert np.abs(relative).max() < 6 * 0.0021
    assert np.abs(1.02 * (relative + 1) - 1).max() > 6 * 0.0021


@pytest.mark.statistical
def test_differences_tell_nothing_about_the_best_copy():
    """R^2 of the least noise on the differences of the copies: about 9 / 109,386, at most 4e-4 with 1e-6 false alarm;
    0.8 where copies are independent."""
    for kind, low, high in (("nested", 0.0, 4e-4), ("independent", 0.5, 1.0)):
        levels = np.linspace(5.1, 12.75, 10)
        sample = noise(kind, levels)
        differences = (sample[1:] - sample[0]).T
        fitted = differences @ np.linalg.lstsq(differences, sample[0], rcond=None)[0]
        assert low <= np.sum(fitted**2) / np.sum(sample[0] ** 2) <= high


def test_averaging_does_not_help():
    weights = 1 / LEVELS**2 / np.sum(1 / LEVELS**2)
    assert (weights @ noise("independent")).std() < 2.5
    assert (weights @ noise("nested")).std() > 5.1 * 0.99


def test_ties_and_silence():
    same = noise("nested", np.array([2.0, 2.0, 3.0]))
    assert (same[0] == same[1]).all() and (same[0] != same[2]).any()
    assert (noise("nested", np.zeros(3)) == 0).all()
    assert np.isfinite(noise("nested", np.array([0.0, 1.0, 1.0 + 1e-16]))).all()
