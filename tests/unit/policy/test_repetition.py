"""Repetition: parts of old updates are found by their noise, and honest devices are not accused."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.policy import repetition
from fairwave.policy.repetition import Repetition, after_updates, no_repetition, repeats
from fairwave.policy.training_evidence import evidence

SIZE, DEVICES, ROUNDS, NOISE = 4_000, 40, 15, 1.0


@dataclasses.dataclass
class Cell:
    """Devices whose updates share a direction and have noise. Device 0 may send old ones again, or learn more."""

    share: float = 0.0
    age: str = "first"
    decoy: float = 0.0
    """Length of an update that device 0 sends once, in round 2, to hide all others behind it; 0 for none."""
    own: float = 0.0
    """How much more than the others device 0 learns, in a direction of its own."""

    def played(self, draws: np.random.Generator) -> Repetition:
        known, everybody = no_repetition(DEVICES, SIZE), jnp.ones(DEVICES, bool)
        steady, other, of_access_point = 0.05 * draws.normal(size=(3, SIZE))
        along = jnp.asarray(np.broadcast_to(steady + self.own * other + of_access_point, (DEVICES, SIZE)))
        past: list[np.ndarray] = []
        for number in range(ROUNDS):
            updates = steady + NOISE * draws.normal(size=(DEVICES, SIZE))
            if number > 2 and self.share:
                old = past[0] if self.age == "first" else past[-1]
                updates[0] = self.share * old + (1.0 - self.share**2) ** 0.5 * NOISE * draws.normal(size=SIZE)
            updates[0] += self.own * other
            if number == 2 and self.decoy:
                updates[0] = self.decoy * draws.normal(size=SIZE)
            past.append(updates[0].copy())
            rows = jnp.asarray(updates)
            known = after_updates(known, rows, evidence(rows, along), everybody, 0.9)
        return known


@pytest.mark.statistical
@pytest.mark.parametrize("age", ["first", "last"])
def test_a_fifth_of_an_old_update_is_found_whatever_its_age(age: str) -> None:
    """Honest devices are beyond the limit once in 300,000: none of 39. Without the limit, many of them would be."""
    known = Cell(share=0.2, age=age).played(np.random.default_rng(0))
    flagged = np.asarray(repeats(known))
    assert flagged[0]
    assert not flagged[1:].any()
    assert np.mean(known.excess[1:] > 0.0) > 0.2


@pytest.mark.parametrize("decoy", [50.0, 1e30])
def test_one_long_update_hides_nothing(decoy: float) -> None:
    """Neither one that is long beside the others nor one whose squared length is beyond single precision."""
    known = Cell(share=0.2, age="first", decoy=decoy).played(np.random.default_rng(6))
    assert bool(repeats(known)[0])
    assert bool(jnp.all(jnp.isfinite(known.excess)))


@pytest.mark.statistical
def test_steady_progress_of_ones_own_is_not_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant in which learning explains nothing accuses a device that learns what nobody else does."""
    learner = Cell(own=2.0)
    assert not bool(repeats(learner.played(np.random.default_rng(4)))[0])
    monkeypatch.setattr(repetition, "EXPLAINED", 0.0)
    assert bool(repeats(learner.played(np.random.default_rng(4)))[0])


@pytest.mark.statistical
def test_excess_of_honest_devices_is_standard_normal() -> None:
    """Mean and spread over 40 honest devices: five standard errors each."""
    known = Cell().played(np.random.default_rng(1))
    standard = np.asarray(known.excess / jnp.sqrt(known.variance))
    assert abs(standard.mean()) < 5.0 / DEVICES**0.5
    assert 0.5 < standard.std() < 1.6


def test_the_sum_of_what_was_sent_and_absence() -> None:
    draws = np.random.default_rng(2)
    first, second = draws.normal(size=(2, 3, 10))
    late = jnp.ones(3)
    known = after_updates(no_repetition(3, 10), jnp.asarray(first), late, jnp.ones(3, bool), 0.9)
    np.testing.assert_array_equal(known.excess, 0.0)  # nothing was sent before
    np.testing.assert_allclose(known.learned, 1.0 / 10**0.5, rtol=1e-6)
    there = jnp.array([True, False, True])
    later = after_updates(known, jnp.asarray(second), late, there, 0.9)
    first, second = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (first, second))
    expected = first + np.where(np.asarray(there)[:, None], second, 0.0)
    np.testing.assert_allclose(later.sent, expected, rtol=1e-6)
    assert float(later.variance[1]) == 0.0
    assert float(later.learned[1]) == float(known.learned[1])
    assert not bool(repeats(later).any())
