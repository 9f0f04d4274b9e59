"""Tests that the noise in one place tells nothing about the noise in another: releases, devices, rounds, leaves, lags.

Two values that are independent have uncorrelated values and uncorrelated magnitudes. The second finds noise that is
used again with another sign.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from fairwave.audit.finding import Finding, worst
from fairwave.audit.noise_law import NoiseLaw

MEAN_MAGNITUDE = math.sqrt(2.0 / math.pi)
"""Mean of the absolute value of a standard normal."""


def release_pairs(releases: np.ndarray, law: NoiseLaw, labels: list[str]) -> Finding:
    """Correlation between any two releases, place by place, of values and of magnitudes."""
    values, magnitudes = _standard(releases, law)
    upper = np.triu_indices(releases.shape[0], 1)
    scores = np.concatenate([(part @ part.T)[upper] / math.sqrt(releases.shape[1]) for part in (values, magnitudes)])
    place = int(np.argmax(_distance(scores)))
    first, second = (labels[axis[place % upper[0].size]] for axis in upper)
    return Finding(
        "noise across releases",
        "correlation of the noise between any two releases: devices, rounds, steps",
        f"correlation {scores[place] / math.sqrt(releases.shape[1]):.4f} between {first} and {second}",
        "0 between any two",
        two_sided_normal(scores),
    )


def lags(releases: np.ndarray, law: NoiseLaw) -> Finding:
    """Correlation of a release with itself at every distance between two parameters, averaged over releases."""
    from scipy.fft import irfft, rfft

    count, size = releases.shape
    scores = []
    for part in _standard(releases, law):
        spectrum = (np.abs(rfft(part, axis=1)) ** 2).sum(axis=0)
        whole = irfft(spectrum, n=size)[1 : size // 2]
        scores.append(whole / math.sqrt(count * size))
    every = np.concatenate(scores)
    place = int(np.argmax(_distance(every)))
    distance = place % scores[0].size + 1
    return Finding(
        "noise within a release",
        "correlation of the noise between any two places a fixed distance apart, within and across leaves",
        f"correlation {every[place] / math.sqrt(count * size):.5f} at distance {distance}",
        "0 at every distance",
        two_sided_normal(every),
    )


def leaf_pairs(releases: np.ndarray, law: NoiseLaw, leaves: dict[str, slice]) -> Finding:
    """Correlation between any two leaves, beginning with the first value of each."""
    values, _ = _standard(releases, law)
    found, correlations = {}, {}
    for first, second in itertools.combinations(leaves, 2):
        size = min(leaves[first].stop - leaves[first].start, leaves[second].stop - leaves[second].start)
        one, other = (values[:, leaves[name]][:, :size].ravel().astype(np.float64) for name in (first, second))
        pair = f"{first} and {second}"
        correlations[pair] = float(one @ other) / max(math.sqrt((one @ one) * (other @ other)), 1e-300)
        found[pair] = _chance_of_correlation(correlations[pair], one.size)
    pair, probability = worst(found or {"itself": 1.0})
    return Finding(
        "noise across leaves",
        "correlation between the first values of any two leaves",
        f"correlation {correlations.get(pair, 0.0):.4f} between {pair}",
        "0 between any two",
        probability,
    )


def _chance_of_correlation(correlation: float, count: int) -> float:
    """Two-sided probability of a correlation of so many pairs of independent normal values: Student's law."""
    from scipy.special import stdtr

    score = abs(correlation) * math.sqrt((count - 1) / max(1.0 - correlation**2, 1e-300))
    return float(2.0 * stdtr(count - 1, -score))


def two_sided_normal(scores: np.ndarray) -> float:
    """Probability that any of so many standard normal scores is as far from zero as the farthest."""
    from scipy.special import ndtr

    return float(np.minimum(1.0, 2.0 * ndtr(-np.max(_distance(scores))) * scores.size))


def _distance(scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(np.abs(scores), nan=np.inf))


def _standard(releases: np.ndarray, law: NoiseLaw) -> tuple[np.ndarray, np.ndarray]:
    """Values in units of their claimed std, and their magnitudes less the mean in units of theirs."""
    values = (releases / law.total_std).astype(np.float32)
    magnitudes = (np.abs(values) - MEAN_MAGNITUDE) / math.sqrt(1.0 - MEAN_MAGNITUDE**2)
    return values, magnitudes.astype(np.float32)
