"""Tests of how well planted canaries show: by an estimate for Gaussian noise, and by a bound that assumes nothing."""

from __future__ import annotations

import math

import numpy as np

from fairwave.audit.claim import Claim
from fairwave.audit.finding import ALARM, Finding

GUESSED_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the canaries about which the one-run test guesses at each end; each is tried with a part of the alarm."""


def separation(scores: np.ndarray, present: np.ndarray, claim: Claim) -> Finding:
    """Difference of means over std: the mu of Gaussian differential privacy, if noise is Gaussian."""
    from scipy.stats import norm

    there, absent = scores[present], scores[~present]
    spread = math.sqrt((np.sum((there - there.mean()) ** 2) + np.sum((absent - absent.mean()) ** 2)) / scores.size)
    found = float(there.mean() - absent.mean()) / max(spread, 1e-300)
    error = math.sqrt(1.0 / there.size + 1.0 / absent.size + 0.5 * found**2 / scores.size)
    probability = float(norm.sf((found - claim.separation) / error))
    measured = f"mu {found:.3f} ± {norm.isf(0.025) * error:.3f} (95 %)"
    return Finding(
        "canaries, Gaussian",
        f"how far apart {scores.size} canaries that are in and out lie, in stds of the noise",
        measured,
        f"{claim.separation:.3f} at most",
        probability,
    )


def weight(scores: np.ndarray, present: np.ndarray, claim: Claim) -> Finding:
    """Whether a contribution that is too long counts as one of the clip length, by noise of the claimed std."""
    from scipy.special import ndtr

    mean = float(scores[present].mean()) / claim.rounds
    error = claim.multiplier / math.sqrt(claim.rounds * present.sum())
    return Finding(
        "length of a contribution",
        "how much an update that is too long adds, in clip lengths",
        f"{mean:.3f} ± {1.96 * error:.3f} (95 %)",
        "1",
        float(2.0 * ndtr(-abs(mean - 1.0) / error)),
    )


def one_run(scores: np.ndarray, present: np.ndarray, claim: Claim) -> Finding:
    """Guess the canaries with the highest scores in, those with the lowest out (Steinke, Nasr and Jagielski 2023)."""
    order = np.argsort(scores)
    share, best = ALARM / len(GUESSED_SHARES), 0.0
    probability = 1.0
    for part in GUESSED_SHARES:
        at_each_end = int(part * scores.size)
        right = int(present[order[-at_each_end:]].sum() + (~present[order[:at_each_end]]).sum())
        guesses = 2 * at_each_end
        best = max(best, lower_bound(scores.size, guesses, right, claim.delta, share))
        chance = guessing_probability(scores.size, guesses, right, claim.epsilon, claim.delta)
        probability = min(probability, len(GUESSED_SHARES) * chance)
    return Finding(
        "canaries, one run",
        f"epsilon that guessing which of {scores.size} canaries are in refutes, whatever the noise",
        f"epsilon at least {best:.3f}",
        f"{claim.epsilon:.3f}",
        probability,
    )


def guessing_probability(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The probability of so many right guesses, or more, against any (epsilon, delta) mechanism, at most."""
    from scipy.stats import binom

    success = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, success))
    mass = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, success))
    slope = float(np.max(mass / np.arange(1, right + 1), initial=0.0))
    return min(1.0, tail + 2.0 * canaries * delta * slope)


def lower_bound(canaries: int, guesses: int, right: int, delta: float, alarm: float) -> float:
    """Largest epsilon that so many right guesses refute."""
    if guessing_probability(canaries, guesses, right, 0.0, delta) >= alarm:
        return 0.0
    low, high = 0.0, 20.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        refuted = guessing_probability(canaries, guesses, right, middle, delta) < alarm
        low, high = (middle, high) if refuted else (low, middle)
    return low
