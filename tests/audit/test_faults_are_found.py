"""The audit flags every planted fault in at least 19 of 20 runs, and correct code in none of 20.

Every run makes at most five tests, each of which raises a false alarm with probability 1e-4 at most: 20 runs of correct
code pass with a probability of 99 % or more, and with fixed seeds always or never.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from fairwave.audit.audit import CANARIES, EPSILON, RELEASES, SAMPLING, batches_verdict, copies_verdict, verdict_on
from fairwave.audit.central_canaries import CentralSubject
from fairwave.audit.copies_coalition import CopiesSubject
from fairwave.audit.exchange_canaries import ExchangeSubject
from fairwave.audit.hypothesis_tests import canary_findings, noise_findings, sampling_finding
from fairwave.audit.training_canaries import TrainingSubject
from fairwave.audit.transcript import Claim, Transcript
from fairwave.extensions import SCHEMES
from fairwave.privacy.clipping import clipped_mean
from fairwave.scenario.loading import load_scenario

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

RUNS = 20
CLAIM = Claim.of_total(EPSILON, RELEASES, 1e-5)
FAIR = load_scenario("fair").privacy
CENTRAL = load_scenario("fair", ["privacy.mode=device"]).privacy


@dataclasses.dataclass(frozen=True)
class FaultyTraining(TrainingSubject):
    """Training with so many times the noise and so many times the clip length that it was asked for."""

    noise: float = 1.0
    clip: float = 1.0
    same_key: bool = False

    def protection(self, claim, num_canaries):
        right = super().protection(claim, num_canaries)
        return dataclasses.replace(
            right,
            clip_norm=right.clip_norm * self.clip,
            noise_multiplier=right.noise_multiplier * self.noise / self.clip,
        )

    def number(self, turn):
        return 0 if self.same_key else turn


@dataclasses.dataclass(frozen=True)
class FaultyCentral(CentralSubject):
    """A release with so many times the noise and so many times the clip length that it was asked for."""

    noise: float = 1.0
    clip: float = 1.0
    same_key: bool = False

    def release(self, claim, state, updates, seed, turn):
        wrong = dataclasses.replace(claim, multiplier=claim.multiplier * self.noise / self.clip)
        looser = self.privacy.model_copy(update={"clip_norm": self.privacy.clip_norm * self.clip})
        return CentralSubject(self.scheme, looser).release(wrong, state, updates, seed, 0 if self.same_key else turn)


class HiddenState(CentralSubject):
    """The access point keeps a model without noise and sends noisy copies of it."""

    def release(self, claim, state, updates, seed, turn):
        after, copies = super().release(claim, state, updates, seed, turn)
        mean = clipped_mean(updates, jnp.ones(updates.shape[0], bool), self.privacy.clip_norm)
        return dataclasses.replace(after, global_params={"w": state.global_params["w"] + mean.value}), copies


class IndependentCopies(CentralSubject):
    """Every device's copy has noise of its own."""

    def release(self, claim, state, updates, seed, turn):
        after, copies = super().release(claim, state, updates, seed, turn)
        mean = clipped_mean(updates, jnp.ones(updates.shape[0], bool), self.privacy.clip_norm)
        clean = np.asarray(state.global_params["w"] + mean.value, np.float64)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), turn), 99)
        std = claim.multiplier * float(mean.sensitivity)
        own = clean + std * np.asarray(jax.random.normal(key, copies.shape))
        own[0] = copies[0]
        return after, own


SQUARE_ROOT = math.sqrt(CLAIM.multiplier) / CLAIM.multiplier
"""The std taken for the variance, or the other way round."""
FAULTS = {
    "noise forgotten": {"noise": 1e-9},
    "noise halved": {"noise": 0.5},
    "std and variance mixed up": {"noise": SQUARE_ROOT},
    "clipping off": {"clip": 2.0},
    "key reused each round": {"same_key": True},
}


class WholeBatches(TrainingSubject):
    """Every record is in every batch, although batches are said to be samples."""

    def run(self, claim, num_canaries, seed):
        return TrainingSubject(self.clip_norm, self.source, self.by_layer).run(claim, num_canaries, seed)


class SilentExchange(ExchangeSubject):
    """The exchanged gradient has no noise."""

    def protection(self, claim):
        return super().protection(dataclasses.replace(claim, multiplier=1e-6))


INDEPENDENT = FAIR.model_copy(update={"copies": "independent"})


def alarms(subject):
    """In how many runs the audit of a mechanism finds fault with it."""
    return sum(verdict_on(subject, CLAIM, CANARIES, seed).flagged for seed in range(RUNS))


def batch_alarms(subject):
    """In how many runs the audit finds fault with how batches are drawn."""
    return sum(batches_verdict(subject, CLAIM, CANARIES, seed).flagged for seed in range(RUNS))


def copy_alarms(privacy):
    """In how many runs the audit finds fault with the copies that devices receive."""
    return sum(copies_verdict(CopiesSubject(SCHEMES["proposed"], privacy), seed).flagged for seed in range(RUNS))


@pytest.mark.parametrize("by_layer", [True, False])
def test_correct_training_raises_no_alarm(by_layer):
    assert alarms(TrainingSubject(by_layer=by_layer)) == 0


def test_correct_batches_raise_no_alarm():
    assert batch_alarms(TrainingSubject()) == 0


def test_a_correct_exchange_raises_no_alarm():
    assert alarms(ExchangeSubject()) == 0


def test_a_correct_release_raises_no_alarm():
    assert alarms(CentralSubject(SCHEMES["max_power"], CENTRAL)) == 0


def test_correct_copies_raise_no_alarm():
    assert copy_alarms(FAIR) == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_training_are_flagged(fault):
    assert alarms(FaultyTraining(**FAULTS[fault])) >= 19


def test_clipping_sample_by_sample_that_is_off_is_flagged():
    assert alarms(FaultyTraining(by_layer=False, clip=2.0)) >= 19


def test_batches_that_are_no_samples_are_flagged():
    assert batch_alarms(WholeBatches()) >= 19


def test_an_exchange_without_noise_is_flagged():
    assert alarms(SilentExchange()) >= 19


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_the_release_are_flagged(fault):
    assert alarms(FaultyCentral(SCHEMES["max_power"], CENTRAL, **FAULTS[fault])) >= 19


def test_a_hidden_noise_free_state_is_flagged():
    """Noisy copies of a model that itself stays without noise are no central privacy."""
    assert alarms(HiddenState(SCHEMES["max_power"], CENTRAL)) >= 19


def test_independent_copies_of_a_release_are_flagged():
    """Devices that pool their copies average the noise away."""
    assert alarms(IndependentCopies(SCHEMES["max_power"], CENTRAL)) >= 19


def test_independent_copies_for_fairness_are_flagged():
    """The same holds where the noise in copies is for fairness and proves nothing."""
    assert copy_alarms(INDEPENDENT) >= 19


QUIET = dataclasses.replace(CLAIM, multiplier=0.1 * CLAIM.multiplier)
"""Noise of a tenth, with which the audit tests how batches are drawn."""
LEVEL, DRAWS = 0.05, 2_000
MOST_ALARMS = int(binom.isf(1e-4, DRAWS, LEVEL))
"""A test with the stated false-alarm probability exceeds this in one of 10,000 runs of this file."""


def _null(claim, share, draw):
    """A transcript of a mechanism that gives away as much as it claims, in plain NumPy: canaries plus noise."""
    present = draw.random(CANARIES) < 0.5
    shown = (draw.random((claim.rounds, CANARIES)) < share) & present
    noise = claim.multiplier * draw.standard_normal((claim.rounds, CANARIES))
    alone = shown + noise
    return Transcript(present, alone, alone.copy())


@functools.cache
def _null_findings():
    """Every test's findings on correct transcripts, drawn with a fixed seed."""
    draw, found = np.random.default_rng(7), {}
    for _ in range(DRAWS):
        whole, sampled = _null(CLAIM, 1.0, draw), _null(QUIET, SAMPLING, draw)
        findings = [*noise_findings(whole, CLAIM, LEVEL), *canary_findings(whole, CLAIM, LEVEL)]
        for finding in (*findings, sampling_finding(sampled, QUIET, SAMPLING, LEVEL)):
            found.setdefault(finding.test, []).append(finding)
    return found


TESTS = (
    "noise in each round",
    "noise over all rounds",
    "noise left to a coalition",
    "canaries, Gaussian",
    "canaries, one run",
    "canaries in batches",
)


@pytest.mark.parametrize("name", TESTS)
def test_false_alarms_are_as_rare_as_stated(name):
    assert sum(finding.flagged for finding in _null_findings()[name]) <= MOST_ALARMS


def test_every_test_of_the_audit_is_calibrated():
    assert set(_null_findings()) == set(TESTS)


@pytest.mark.parametrize("name", ["noise in each round", "canaries, Gaussian", "canaries in batches"])
def test_half_the_probability_is_noticed(name):
    """The calibration can fail: a test that stated one tail of two would raise too many alarms."""
    assert sum(finding.probability / 2 < LEVEL for finding in _null_findings()[name]) > MOST_ALARMS
