"""Tests of a transcript against its claim; each raises a false alarm with the stated probability at most."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from fairwave.audit.transcript import Claim, Transcript

GUESSED_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the canaries about which the one-run test guesses at each end; each is tried with a part of the alarm."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one test says."""

    test: str
    measured: str
    claimed: str
    probability: float
    """Probability of so much against the claim, or more, if the claim is true."""
    flagged: bool


def noise_findings(transcript: Transcript, claim: Claim, alarm: float) -> list[Finding]:
    """Where no canary shows there is noise alone: of the right size in every round, and independent across rounds."""
    empty = np.concatenate(
        [np.flatnonzero(~transcript.present), np.arange(transcript.present.size, transcript.alone.shape[1])]
    )
    per_round = claim.multiplier * math.sqrt(claim.rounds / transcript.alone.shape[0])
    alone, pooled = transcript.alone[:, empty] / per_round, transcript.pooled[:, empty] / per_round
    summed = alone.sum(axis=0) / math.sqrt(alone.shape[0])
    found = [scale_test("noise in each round", alone, alarm), scale_test("noise over all rounds", summed, alarm)]
    if transcript.pooled is not transcript.alone:
        found.append(scale_test("noise left to a coalition", pooled, alarm, too_little_only=True))
    return found


def scale_test(name: str, residuals: np.ndarray, alarm: float, *, too_little_only: bool = False) -> Finding:
    """Chi-square test that residuals, in units of their claimed std, have it."""
    from scipy.stats import chi2

    energy, count = float(np.sum(residuals**2)), residuals.size
    low = float(chi2.cdf(energy, count))
    probability = low if too_little_only else 2.0 * min(low, float(chi2.sf(energy, count)))
    measured = f"std {math.sqrt(energy / count):.3f} of the claimed"
    return Finding(name, measured, "1 or more" if too_little_only else "1", probability, probability < alarm)


def sampling_finding(transcript: Transcript, claim: Claim, sampling: float, alarm: float) -> Finding:
    """Whether canaries that are in enter batches as seldom as claimed: more often, and the accounting is wrong."""
    from scipy.stats import norm

    scores = transcript.alone[:, : transcript.present.size].sum(axis=0)[transcript.present]
    expected = sampling * claim.rounds
    variance = claim.rounds * (claim.multiplier**2 + sampling * (1.0 - sampling))
    probability = float(norm.sf((scores.mean() - expected) / math.sqrt(variance / scores.size)))
    measured = f"in {scores.mean() / claim.rounds:.3f} of all steps"
    return Finding("canaries in batches", measured, f"{sampling:.3f}", probability, probability < alarm)


def canary_findings(transcript: Transcript, claim: Claim, alarm: float) -> list[Finding]:
    """Whether the canaries show more than the claim allows: by Gaussian separation, and without any assumption."""
    scores = transcript.pooled[:, : transcript.present.size].sum(axis=0)
    return [_separation(scores, transcript.present, claim, alarm), _one_run(scores, transcript.present, claim, alarm)]


def _separation(scores: np.ndarray, present: np.ndarray, claim: Claim, alarm: float) -> Finding:
    """Difference of means over std: the mu of Gaussian differential privacy, if noise is Gaussian."""
    from scipy.stats import norm

    there, absent = scores[present], scores[~present]
    spread = math.sqrt((np.sum((there - there.mean()) ** 2) + np.sum((absent - absent.mean()) ** 2)) / scores.size)
    separation = float(there.mean() - absent.mean()) / max(spread, 1e-300)
    error = math.sqrt(1.0 / there.size + 1.0 / absent.size + 0.5 * separation**2 / scores.size)
    probability = float(norm.sf((separation - claim.separation) / error))
    measured = f"mu {separation:.3f} ± {norm.isf(0.025) * error:.3f} (95 %)"
    return Finding("canaries, Gaussian", measured, f"{claim.separation:.3f}", probability, probability < alarm)


def _one_run(scores: np.ndarray, present: np.ndarray, claim: Claim, alarm: float) -> Finding:
    """Guess the canaries with the highest scores in, those with the lowest out (Steinke, Nasr and Jagielski 2023)."""
    order = np.argsort(scores)
    share, best = alarm / len(GUESSED_SHARES), 0.0
    probability = 1.0
    for part in GUESSED_SHARES:
        at_each_end = int(part * scores.size)
        right = int(present[order[-at_each_end:]].sum() + (~present[order[:at_each_end]]).sum())
        guesses = 2 * at_each_end
        best = max(best, _lower_bound(scores.size, guesses, right, claim.delta, share))
        chance = guessing_probability(scores.size, guesses, right, claim.epsilon, claim.delta)
        probability = min(probability, len(GUESSED_SHARES) * chance)
    measured = f"epsilon at least {best:.3f}"
    return Finding("canaries, one run", measured, f"{claim.epsilon:.3f}", probability, best > claim.epsilon)


def guessing_probability(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The probability of so many right guesses, or more, against any (epsilon, delta) mechanism, at most."""
    from scipy.stats import binom

    success = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, success))
    mass = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, success))
    slope = float(np.max(mass / np.arange(1, right + 1), initial=0.0))
    return min(1.0, tail + 2.0 * canaries * delta * slope)


def _lower_bound(canaries: int, guesses: int, right: int, delta: float, alarm: float) -> float:
    """Largest epsilon that so many right guesses refute."""
    if guessing_probability(canaries, guesses, right, 0.0, delta) >= alarm:
        return 0.0
    low, high = 0.0, 20.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        refuted = guessing_probability(canaries, guesses, right, middle, delta) < alarm
        low, high = (middle, high) if refuted else (low, middle)
    return low
