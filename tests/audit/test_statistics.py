"""The audit's statistics, on data drawn in plain NumPy: p-values are as rare as they say, and faults are rejected.

Under the claim, a p-value is below 5 % in at most 5 % of all draws. The calibration allows what a binomial law exceeds
with probability 1e-4; it notices a test that states a quarter of its probability.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import binom

from fairwave.audit.batch_tests import batch_findings
from fairwave.audit.canary_tests import one_run, separation, weight
from fairwave.audit.claim import Claim
from fairwave.audit.contribution_tests import agreement, inclusion, leftovers, sensitivity
from fairwave.audit.dependence_tests import lags, leaf_pairs, release_pairs
from fairwave.audit.finding import Finding, worst
from fairwave.audit.loss_oracle import epsilon_from_below
from fairwave.audit.noise_law import NoiseLaw
from fairwave.audit.noise_tests import leaf_scales, leaf_shapes, release_scales, value_scales
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.hardened_noise import hardened_noised

LAW = NoiseLaw(1.3)
LEAVES = {"bias": slice(0, 40), "weight": slice(40, 1_040)}
ROUNDS, SIZE = 12, 1_040
LABELS = [f"round {turn}" for turn in range(ROUNDS)]
PROBABILITY, STEPS, RECORDS = 0.25, 60, 128
LEVEL, DRAWS = 0.05, 600
MOST_ALARMS = int(binom.isf(1e-4, DRAWS, LEVEL))
CLAIM = Claim.of_total(1.0, 4)


def noise_findings(releases: np.ndarray, law: NoiseLaw = LAW) -> list[Finding]:
    return [
        leaf_scales(releases, law, LEAVES),
        release_scales(releases, law),
        value_scales(releases, law),
        leaf_shapes(releases, law, LEAVES),
        leaf_pairs(releases, law, LEAVES),
        lags(releases, law),
        release_pairs(releases, law, LABELS),
    ]


def sum_findings(draw: np.random.Generator, scale: float = 1.0) -> list[Finding]:
    """Sums of known gradients plus noise, and what is decoded from sums of independent ones."""
    total = 30.0 * draw.standard_normal(SIZE) / np.sqrt(SIZE)
    released = {"records": scale * total + LAW.std * draw.standard_normal(SIZE)}
    equal = 50.0 * scale * np.eye(1, SIZE)[0] + LAW.std * draw.standard_normal(SIZE)
    taken = draw.random((20, 64)) < 0.5
    shown = scale * taken + 0.1 * draw.standard_normal(taken.shape)
    return [
        agreement(released, {"records": total}, LAW, LEAVES),
        leftovers(released, {"records": total}, LAW),
        sensitivity(np.asarray([np.sum(equal**2)]), np.asarray([SIZE]), 50, LAW, ["a copy"]),
        inclusion(shown, taken, 0.01 * np.eye(64)),
    ]


def canary_findings(draw: np.random.Generator, noise: float = 1.0) -> list[Finding]:
    present = draw.random(400) < 0.5
    scores = CLAIM.rounds * present + noise * CLAIM.multiplier * np.sqrt(CLAIM.rounds) * draw.standard_normal(400)
    return [weight(scores, present, CLAIM), separation(scores, present, CLAIM), one_run(scores, present, CLAIM)]


def batches(draw: np.random.Generator) -> np.ndarray:
    return draw.random((STEPS, RECORDS)) < PROBABILITY


@functools.cache
def null_findings() -> dict[str, list[Finding]]:
    """Every test's findings where the claim is true."""
    draw, found = np.random.default_rng(7), {}
    for turn in range(DRAWS):
        releases = LAW.std * draw.standard_normal((ROUNDS, SIZE))
        several = [*noise_findings(releases), *batch_findings(batches(draw), PROBABILITY, turn)]
        for finding in (*several, *sum_findings(draw), *canary_findings(draw)):
            found.setdefault(finding.test, []).append(finding)
    return found


TESTS = (
    *("noise per leaf", "noise per release", "noise per value", "shape of the noise"),
    *("noise across leaves", "noise within a release", "noise across releases"),
    *("rate of records", "size of batches", "law of batch sizes", "records at a distance", "pairs of records"),
    "batches of two steps",
    *("sums of clipped gradients", "beside the clipped gradients", "sensitivity to hostile copies"),
    *("weight of a record", "canaries, Gaussian", "canaries, one run", "length of a contribution"),
)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", TESTS)
def test_false_alarms_are_as_rare_as_stated(name):
    assert sum(finding.probability < LEVEL for finding in null_findings()[name]) <= MOST_ALARMS


@pytest.mark.slow
@pytest.mark.statistical
def test_no_claim_that_is_true_is_refuted():
    assert set(null_findings()) == set(TESTS)
    assert not any(finding.flagged for findings in null_findings().values() for finding in findings)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["noise per release", "size of batches", "canaries, Gaussian", "weight of a record"])
def test_a_quarter_of_the_probability_is_noticed(name):
    """The calibration can fail: a test that understated its probability by a factor of four raises too many alarms."""
    assert sum(finding.probability / 4 < LEVEL for finding in null_findings()[name]) > MOST_ALARMS


def flagging(findings: list[Finding]) -> set[str]:
    return {finding.test for finding in findings if finding.flagged}


def releases_of(change) -> list[Finding]:
    return noise_findings(change(LAW.std * np.random.default_rng(3).standard_normal((ROUNDS, SIZE))))


def with_columns(releases: np.ndarray, columns: slice, values: np.ndarray) -> np.ndarray:
    changed = releases.copy()
    changed[:, columns] = values
    return changed


@pytest.mark.parametrize(
    "test, change",
    [
        ("noise per leaf", lambda x: with_columns(x, LEAVES["bias"], 0.5 * x[:, LEAVES["bias"]])),
        ("noise per release", lambda x: x * np.where(np.arange(ROUNDS) == 3, 0.8, 1.0)[:, None]),
        ("noise per value", lambda x: with_columns(x, slice(500, 501), 0.0)),
        ("shape of the noise", lambda x: LAW.std * np.sign(x)),
        ("noise across leaves", lambda x: with_columns(x, LEAVES["bias"], x[:, 40:80])),
        ("noise within a release", lambda x: with_columns(x, slice(540, 1_040), x[:, 40:540])),
        ("noise across releases", lambda x: x[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]]),
        ("noise across releases", lambda x: np.concatenate([x[:-1], -x[:1]])),
        ("noise per release", lambda x: np.where(np.arange(SIZE) == 9, np.nan, x)),
    ],
)
def test_noise_with_a_fault_is_rejected(test, change):
    assert test in flagging(releases_of(change))


def twice(taken: np.ndarray) -> np.ndarray:
    return np.tile(taken[:, : RECORDS // 2], 2)


def shuffled_pairs(taken: np.ndarray) -> np.ndarray:
    return twice(taken)[:, np.random.default_rng(1).permutation(RECORDS)]


def fixed_size(taken: np.ndarray) -> np.ndarray:
    draw = np.random.default_rng(2)
    return np.argsort(draw.random(taken.shape), axis=1) < round(PROBABILITY * RECORDS)


@pytest.mark.parametrize(
    "test, change",
    [
        ("rate of records", lambda x: np.where(np.arange(RECORDS) == RECORDS - 1, True, x)),
        ("rate of records", lambda x: x | (np.random.default_rng(4).random(x.shape) < 0.1)),
        ("size of batches", fixed_size),
        ("law of batch sizes", lambda x: x & (np.cumsum(x, axis=1) <= PROBABILITY * RECORDS)),
        ("records at a distance", twice),
        ("pairs of records", shuffled_pairs),
        ("batches of two steps", lambda x: np.where(np.arange(STEPS)[:, None] == 7, x[5], x)),
    ],
)
def test_batches_with_a_fault_are_rejected(test, change):
    taken = change(batches(np.random.default_rng(5)))
    assert test in flagging(batch_findings(taken, PROBABILITY, 0))


def test_wrong_sums_and_weights_are_rejected():
    wanted = {"sums of clipped gradients", "beside the clipped gradients", "sensitivity to hostile copies"}
    assert flagging(sum_findings(np.random.default_rng(6), scale=2.0)) == wanted | {"weight of a record"}


def test_canaries_without_noise_are_seen():
    assert flagging(canary_findings(np.random.default_rng(8), noise=0.1)) == {"canaries, Gaussian", "canaries, one run"}


def test_hardened_noise_has_the_law_that_is_claimed_for_it_and_no_plain_gaussian():
    std = 0.9  # a grid of eight steps to a std or so
    releases = hardened_noised(np.zeros((400, SIZE)), std)
    assert leaf_shapes(releases, NoiseLaw.claimed("hardened", std, 1.0), LEAVES).probability > 1e-4
    assert leaf_scales(releases, NoiseLaw.claimed("hardened", std, 1.0), LEAVES).probability > 1e-4
    assert leaf_shapes(releases, NoiseLaw(std), LEAVES).flagged


def test_the_worst_of_several_is_corrected_for_their_number():
    assert worst({"a": 0.2, "b": 0.01}) == ("b", 0.02) and worst({"a": 0.9, "b": 0.8}) == ("b", 1.0)
    name, probability = worst({"a": 0.2, "b": float("nan")})
    assert name == "b" and Finding("", "", "", "", probability).flagged


@pytest.mark.parametrize("sampling, steps", [(0.25, 1), (0.25, 6), (1.0, 4)])
def test_the_bound_from_below_is_below_the_accountant_and_close_to_it(sampling, steps):
    below, told = epsilon_from_below(1.3, sampling, steps, 1e-5), epsilon_of({(1.3, sampling): steps}, 1e-5)
    assert 0.99 * told < below <= told
    assert epsilon_from_below(1.3, sampling, steps + 1, 1e-5) > told  # one step that was not charged would show
