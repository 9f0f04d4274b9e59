"""Repetition: parts of old updates are found by their noise, and honest devices are not accused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.policy.repetition import Repetition, after_updates, no_repetition, repeats

SIZE, DEVICES, ROUNDS, NOISE = 4_000, 40, 15, 1.0


def played(share: float, age: str, draws: np.random.Generator) -> Repetition:
    """Rounds of updates that share a direction and have noise; device 0 sends a part of an old one again."""
    known, everybody = no_repetition(DEVICES, SIZE), jnp.ones(DEVICES, bool)
    steady = 0.05 * draws.normal(size=SIZE)
    past: list[np.ndarray] = []
    for number in range(ROUNDS):
        updates = steady + NOISE * draws.normal(size=(DEVICES, SIZE))
        if number > 2 and share:
            old = past[0] if age == "first" else past[-1]
            updates[0] = share * old + (1.0 - share**2) ** 0.5 * NOISE * draws.normal(size=SIZE)
        past.append(updates[0].copy())
        known = after_updates(known, jnp.asarray(updates), everybody, 0.9)
    return known


@pytest.mark.statistical
@pytest.mark.parametrize("age", ["first", "last"])
def test_a_fifth_of_an_old_update_is_found_whatever_its_age(age: str) -> None:
    """Honest devices are beyond the limit once in 300,000: none of 39. Without the limit, half of them would be."""
    known = played(0.2, age, np.random.default_rng(0))
    flagged = np.asarray(repeats(known))
    assert flagged[0]
    assert not flagged[1:].any()
    assert np.mean(known.excess[1:] > 0.0) > 0.2


@pytest.mark.statistical
def test_excess_of_honest_devices_is_standard_normal() -> None:
    """Mean and spread over 39 honest devices: five standard errors each."""
    known = played(0.0, "first", np.random.default_rng(1))
    standard = np.asarray(known.excess / jnp.sqrt(known.variance))
    assert abs(standard.mean()) < 5.0 / DEVICES**0.5
    assert 0.5 < standard.std() < 1.6


def test_the_sum_of_what_was_sent_and_absence() -> None:
    draws = np.random.default_rng(2)
    first, second = draws.normal(size=(2, 3, 10))
    known = after_updates(no_repetition(3, 10), jnp.asarray(first), jnp.ones(3, bool), 0.9)
    np.testing.assert_array_equal(known.excess, 0.0)  # nothing was sent before
    there = jnp.array([True, False, True])
    later = after_updates(known, jnp.asarray(second), there, 0.9)
    expected = first + np.where(np.asarray(there)[:, None], second, 0.0)
    np.testing.assert_allclose(later.sent, expected, rtol=1e-6)
    assert float(later.variance[1]) == 0.0
    assert not bool(repeats(later).any())
