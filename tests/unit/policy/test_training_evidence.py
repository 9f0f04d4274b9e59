"""Evidence of work: its law where nothing was trained, its mean where something was, and the deviations that follow.

The quadratic problem below has closed forms for everything: a NumPy twin of docs/incentives.md.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fairwave.policy.training_evidence import (
    LATE_STEPS,
    RESPONSE,
    SPREAD,
    TOLERANCE,
    Evidence,
    RoundEvidence,
    evidence,
    evidence_deviation,
    no_evidence,
    pooled,
    round_evidence,
    round_weight,
    work_share,
)

SIZE, STEPS, EARLY, RATE = 2_000, 20, 8, 1.0
CURVATURE = 0.5 * np.arange(1, SIZE + 1) ** -1.0
COPY_NOISE, STEP_NOISE, WAY = 0.4, 0.2, 0.3


def left(steps: int) -> np.ndarray:
    """What is left of a distance from the optimum after so many steps, by coordinate."""
    return (1.0 - RATE * CURVATURE) ** steps


def noise_variance(steps: int) -> np.ndarray:
    """Variance of an update by the noise of its steps, of which later steps take some back."""
    return STEP_NOISE**2 * RATE**2 * sum(left(2 * step) for step in range(steps))


@dataclasses.dataclass
class Rounds:
    """Many independent rounds of one device: where it starts, and what the access point looks along."""

    draws: np.random.Generator
    count: int = 400

    def __post_init__(self) -> None:
        self.noise = COPY_NOISE * self.draws.normal(size=(self.count, SIZE))
        self.way = WAY * self.draws.normal(size=SIZE)
        self.start = self.way + self.noise
        response = -(1.0 - left(STEPS)) * self.noise
        late = -(left(EARLY) - left(STEPS)) * self.start
        self.directions = np.stack([self._beside(response), self._beside(late)])

    def _beside(self, rows: np.ndarray) -> np.ndarray:
        along = np.sum(rows * self.noise, axis=1) / np.sum(self.noise**2, axis=1)
        return rows - along[:, None] * self.noise

    def trained(self, steps: int) -> np.ndarray:
        mean = -(1.0 - left(steps)) * self.start
        return mean + np.sqrt(noise_variance(steps)) * self.draws.normal(size=mean.shape)

    def shown(self, updates: np.ndarray) -> np.ndarray:
        return np.stack([np.asarray(evidence(jnp.asarray(updates), jnp.asarray(each))) for each in self.directions])

    def predicted(self, steps: int, added_variance: float = 0.0) -> np.ndarray:
        """The mean of evidence, as docs/incentives.md has it."""
        mean = -(1.0 - left(steps)) * self.start
        squared = np.sum(mean**2, axis=1) + np.sum(noise_variance(steps) + added_variance)
        along = np.sum(mean * self.directions, axis=2) / np.linalg.norm(self.directions, axis=2)
        return np.mean(SIZE**0.5 * along / np.sqrt(squared), axis=1)


@pytest.fixture
def rounds() -> Rounds:
    return Rounds(np.random.default_rng(0))


@pytest.mark.statistical
def test_evidence_of_what_was_not_trained_is_standard_normal(rounds: Rounds) -> None:
    """False alarms: 1 in 1,000 for each of six comparisons. The mutant without the factor for length is rejected."""
    before = Rounds(np.random.default_rng(1)).trained(STEPS)
    random = rounds.draws.normal(size=before.shape)
    anti_noise = -rounds.noise  # guessed from earlier copies; the noise is taken out of both directions
    for sent in (before, random):
        for along in rounds.shown(sent):
            assert stats.kstest(along, "norm").pvalue > 1e-3
            assert stats.kstest(along / SIZE**0.5, "norm").pvalue < 1e-3
    assert np.abs(rounds.shown(anti_noise)).max() < 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("steps", [STEPS, 10, 4, 2])
def test_predicted_means_hold(rounds: Rounds, steps: int) -> None:
    """Four standard errors: false alarms 1 in 16,000 each. Half the prediction is rejected for full work."""
    shown = rounds.shown(rounds.trained(steps))
    error = shown.std(axis=1) / rounds.count**0.5
    predicted = rounds.predicted(steps)
    assert np.all(np.abs(shown.mean(axis=1) - predicted) < 4.0 * error + 0.02 * np.abs(predicted))
    if steps == STEPS:
        assert np.all(np.abs(shown.mean(axis=1) - 0.5 * predicted) > 4.0 * error)


def test_scaling_changes_nothing_and_added_noise_lowers_evidence(rounds: Rounds) -> None:
    honest = rounds.trained(STEPS)
    np.testing.assert_allclose(rounds.shown(10.0 * honest), rounds.shown(honest), rtol=1e-4, atol=1e-4)
    hidden = honest + 2.0 * STEP_NOISE * STEPS**0.5 * rounds.draws.normal(size=honest.shape)
    assert np.all(rounds.shown(hidden).mean(axis=1) < rounds.shown(honest).mean(axis=1))


def test_few_steps_show_in_the_late_direction(rounds: Rounds) -> None:
    """A tenth of the steps responds to most of the noise that all of them do; where late steps go, it does not."""
    share = rounds.predicted(2) / rounds.predicted(STEPS)
    assert share[RESPONSE] > 0.7
    assert share[LATE_STEPS] < 0.5


def one_more(pool: Evidence, found: np.ndarray, there: jax.Array, memory: float, foreseen: float = 4.0) -> Evidence:
    """Evidence after a round in which the same is foreseen for all."""
    shown = jnp.asarray(found)
    return pooled(pool, RoundEvidence(shown, jnp.full_like(shown, foreseen)), there, memory)


def after(current: np.ndarray, memory: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Deviations after rounds of evidence (round, test, device), and the pooled share and error."""
    pool = no_evidence(current.shape[2])
    everybody = jnp.ones(current.shape[2], bool)
    for each in current:
        pool = one_more(pool, each, everybody, memory)
    share, error = work_share(pool)
    deviation = evidence_deviation(pool, everybody, jnp.zeros(current.shape[2]), 0.01)
    return np.asarray(deviation), np.asarray(share), np.asarray(error)


def test_pooling_is_a_weighted_mean() -> None:
    current = np.random.default_rng(2).normal(loc=2.0, size=(6, 2, 5))
    _, share, error = after(current)
    usual = np.median(current, axis=2)
    weight = np.where(usual > 0, usual / (1.0 + (SPREAD * usual) ** 2), 0.0) * 0.9 ** np.arange(5, -1, -1)[:, None]
    expected = np.einsum("rt,rtd->td", weight, current) / np.einsum("rt,rt->t", weight, usual)[:, None]
    np.testing.assert_allclose(share, expected, rtol=1e-6)
    known = np.sqrt(np.sum(weight**2, axis=0)) / np.sum(weight * usual, axis=0)
    np.testing.assert_allclose(error, np.broadcast_to(known[:, None], error.shape), rtol=1e-6)


@pytest.mark.statistical
def test_false_alarms_are_as_few_as_asked_and_none_deviates_fully() -> None:
    """Honest devices of evidence 2 a round: at most 1 % per direction, so 2 % of 2,000 and five standard errors."""
    draws = np.random.default_rng(3)
    usual = np.full((20, 2, 2_000), 2.0)
    honest = draws.normal(loc=usual)
    deviation, *_ = after(honest)
    assert np.mean(deviation > 0.0) < 0.02 + 5.0 * (0.02 / 2_000) ** 0.5
    lazy = honest.copy()
    lazy[:, :, ::10] -= 2.0
    deviation, *_ = after(lazy)
    assert np.mean(deviation[::10]) > 0.9
    without_error = np.mean(work := after(honest)[1] < 1.0 - TOLERANCE)  # the mutant: no allowance for chance
    assert without_error > 0.1
    assert work.shape == (2, 2_000)


def test_deviation_falls_with_effort() -> None:
    """Without chance: from 1 for no work to 0 for full work, never rising."""
    effort = np.linspace(0.0, 1.0, 11)
    current = np.broadcast_to(10.0 * np.concatenate([effort, np.ones(30)]), (10, 2, 41))
    deviation = after(current)[0][:11]
    assert deviation[0] == 1.0
    assert deviation[-1] == 0.0
    assert np.all(np.diff(deviation) <= 0.0)


def test_more_is_asked_of_a_noisier_copy() -> None:
    """Three times the noise in a copy, three times the answer of full work: the same share of it."""
    foreseen = jnp.array([4.0] * 8 + [12.0] * 2)[None, :] * jnp.ones((2, 1))
    full = pooled(no_evidence(10), RoundEvidence(0.5 * foreseen, foreseen), jnp.ones(10, bool), 0.9)
    np.testing.assert_allclose(work_share(full)[0], 1.0, rtol=1e-6)
    lazy = (0.5 * foreseen).at[:, -1].set(2.0)  # what would be full work from a usual copy
    part = pooled(no_evidence(10), RoundEvidence(lazy, foreseen), jnp.ones(10, bool), 0.9)
    np.testing.assert_allclose(work_share(part)[0][:, -1], 1.0 / 3.0, rtol=1e-6)


def test_what_is_foreseen_is_in_the_noise_of_the_median_update(rounds: Rounds) -> None:
    """Whoever sends ten times its update is not asked for less, and shows no more."""
    updates, directions = rounds.trained(STEPS), rounds.directions
    reached = np.ones(directions.shape[:2])
    there = np.ones(rounds.count, bool)
    plain = round_evidence(jnp.asarray(updates), jnp.asarray(directions), jnp.asarray(reached), jnp.asarray(there))
    updates[0] *= 10.0
    longer = round_evidence(jnp.asarray(updates), jnp.asarray(directions), jnp.asarray(reached), jnp.asarray(there))
    for one, other in ((plain.found, longer.found), (plain.foreseen, longer.foreseen)):
        np.testing.assert_allclose(one, other, rtol=1e-3)
    noise = np.median(np.linalg.norm(updates, axis=1)) / SIZE**0.5
    np.testing.assert_allclose(longer.foreseen, 1.0 / noise, rtol=1e-5)


def test_few_steps_answer_too_well() -> None:
    """Twice the answer to the noise and half of the late steps: a quarter of full work, not a half."""
    found = np.full((10, 2, 10), 8.0)
    found[:, RESPONSE, 0], found[:, LATE_STEPS, 0] = 16.0, 4.0
    deviation, share, error = after(found)
    late_error = (error[LATE_STEPS, 0] ** 2 + (0.25 * error[RESPONSE, 0]) ** 2) ** 0.5 / 2.0
    threshold = 1.0 - TOLERANCE + stats.norm.ppf(0.01) * late_error
    np.testing.assert_allclose(share[:, 0], [2.0, 0.5], rtol=1e-6)
    assert deviation[0] == pytest.approx(1.0 - 0.25 / threshold, rel=1e-4)
    np.testing.assert_array_equal(deviation[1:], 0.0)


def test_weak_evidence_accuses_nobody() -> None:
    draws = np.random.default_rng(5)
    deviation, *_ = after(draws.normal(loc=0.05, size=(3, 2, 10)))
    np.testing.assert_array_equal(deviation, 0.0)


def test_whoever_is_absent_keeps_what_it_has() -> None:
    pool = one_more(no_evidence(3), np.full((2, 3), 2.0), jnp.ones(3, bool), 0.9)
    there = jnp.array([True, False, True])
    later = one_more(pool, np.full((2, 3), 3.0), there, 0.9)
    before, now = jax.tree.leaves(pool), jax.tree.leaves(later)
    assert all(bool(jnp.all(old[:, 1] == new[:, 1])) for old, new in zip(before, now, strict=True))
    deviation = evidence_deviation(later, there, jnp.array([0.0, 0.7, 0.0]), 0.01)
    assert float(deviation[1]) == pytest.approx(0.7)


def test_one_strong_round_does_not_outweigh_all_others() -> None:
    assert float(round_weight(jnp.asarray(30.0)) * 30.0) < 4.0 * float(round_weight(jnp.asarray(2.0)) * 2.0)
    assert float(round_weight(jnp.asarray(-1.0))) == 0.0
