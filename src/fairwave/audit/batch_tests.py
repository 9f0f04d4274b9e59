"""Tests of how batches are drawn: each record with the stated probability, independently of all others and all steps.

`taken` has a row per step and a column per record, and says who was in the batch.
"""

from __future__ import annotations

import math

import numpy as np

from fairwave.audit.dependence_tests import two_sided_normal
from fairwave.audit.finding import Finding
from fairwave.audit.noise_tests import two_sided

NULL_DRAWS = 60
"""Simulated Poisson batches against which the sum over all pairs of records is compared."""


def batch_findings(taken: np.ndarray, probability: float, seed: int) -> list[Finding]:
    """All tests of one device's batches."""
    return [
        record_rates(taken, probability),
        batch_sizes(taken, probability),
        law_of_sizes(taken, probability, seed),
        record_lags(taken, probability),
        record_pairs(taken, probability, seed),
        step_pairs(taken),
    ]


def record_rates(taken: np.ndarray, probability: float) -> Finding:
    """Binomial test of how often every record, and all together, were taken."""
    from scipy.stats import binom

    steps, records = taken.shape
    often = np.append(taken.sum(axis=0), taken.sum())
    tries = np.append(np.full(records, steps), taken.size)
    chances = 2.0 * np.minimum(binom.cdf(often, tries, probability), binom.sf(often - 1, tries, probability))
    place = int(np.argmin(chances))
    who = "all records together" if place == records else f"record {place + 1} of {records}"
    return Finding(
        "rate of records",
        "how often each record is in the batch",
        f"{often[place] / tries[place]:.3f} for {who}, the most doubtful",
        f"{probability:.3f} for each",
        float(min(1.0, chances[place] * chances.size)),
    )


def batch_sizes(taken: np.ndarray, probability: float) -> Finding:
    """Chi-square test of the variance of the batch size: binomial, neither fixed nor in clumps."""
    steps, records = taken.shape
    variance = records * probability * (1.0 - probability)
    energy = float(np.sum((taken.sum(axis=1) - records * probability) ** 2) / variance)
    return Finding(
        "size of batches",
        "variance of the batch size over steps",
        f"std {math.sqrt(energy / steps):.3f} of the binomial's",
        "1",
        float(two_sided(energy, steps)),
    )


def law_of_sizes(taken: np.ndarray, probability: float, seed: int) -> Finding:
    """Kolmogorov-Smirnov test of the batch sizes against the binomial law, ties broken at random."""
    from scipy.stats import binom, kstest

    sizes, draw = taken.sum(axis=1), np.random.default_rng(seed)
    law = binom(taken.shape[1], probability)
    places = law.cdf(sizes - 1) + draw.random(sizes.size) * law.pmf(sizes)
    found = kstest(places, "uniform")
    return Finding(
        "law of batch sizes",
        "distribution of the batch size over steps",
        f"up to {found.statistic:.3f} from the binomial distribution, sizes {sizes.min()} to {sizes.max()}",
        f"about {0.87 / math.sqrt(sizes.size):.3f}",
        float(found.pvalue),
    )


def record_lags(taken: np.ndarray, probability: float) -> Finding:
    """Correlation between records that stand a fixed distance apart, over all steps."""
    from scipy.fft import irfft, rfft

    centred = _centred(taken, probability)
    spectrum = (np.abs(rfft(centred, axis=1)) ** 2).sum(axis=0)
    scores = irfft(spectrum, n=taken.shape[1])[1 : taken.shape[1] // 2 + 1] / math.sqrt(taken.size)
    if taken.shape[1] % 2 == 0:  # half way round, every pair was counted twice
        scores[-1] /= math.sqrt(2.0)
    place = int(np.argmax(np.abs(scores)))
    return Finding(
        "records at a distance",
        "whether records a fixed distance apart enter batches together",
        f"correlation {scores[place] / math.sqrt(taken.size):.3f} at distance {place + 1}",
        "0 at every distance",
        two_sided_normal(scores),
    )


def record_pairs(taken: np.ndarray, probability: float, seed: int) -> Finding:
    """Sum of the squared correlations of all pairs of records, against simulated Poisson batches."""
    from scipy.special import stdtr

    draw = np.random.default_rng(seed)
    null = [_pair_energy(draw.random(taken.shape) < probability, probability) for _ in range(NULL_DRAWS)]
    measured, mean, spread = _pair_energy(taken, probability), float(np.mean(null)), float(np.std(null, ddof=1))
    score = (measured - mean) / (spread * math.sqrt(1.0 + 1.0 / NULL_DRAWS))
    return Finding(
        "pairs of records",
        "whether any pairs of records enter batches together",
        f"squared correlations add up to {measured / mean:.3f} of the expected",
        "1",
        float(2.0 * stdtr(NULL_DRAWS - 1, -abs(score))),
    )


def step_pairs(taken: np.ndarray) -> Finding:
    """Hypergeometric test of how many records two batches share, given their sizes, for any two steps."""
    from scipy.stats import hypergeom

    sizes, shared = taken.sum(axis=1), taken.astype(np.int64) @ taken.T.astype(np.int64)
    first, second = np.triu_indices(taken.shape[0], 1)
    law = hypergeom(taken.shape[1], sizes[first], sizes[second])
    chances = 2.0 * np.minimum(law.cdf(shared[first, second]), law.sf(shared[first, second] - 1))
    place = int(np.argmin(chances))
    expected = sizes[first[place]] * sizes[second[place]] / taken.shape[1]
    return Finding(
        "batches of two steps",
        "whether any two batches share more or fewer records than chance",
        f"{shared[first[place], second[place]]} records in common in the most doubtful pair of steps",
        f"about {expected:.0f}",
        float(min(1.0, chances[place] * chances.size)),
    )


def _centred(taken: np.ndarray, probability: float) -> np.ndarray:
    return np.asarray((taken - probability) / math.sqrt(probability * (1.0 - probability)))


def _pair_energy(taken: np.ndarray, probability: float) -> float:
    """Sum over all pairs of records of their squared correlation."""
    centred = _centred(taken, probability).astype(np.float32)
    gram = centred.T @ centred / taken.shape[0]
    return float(np.sum(gram**2) - np.sum(np.diag(gram) ** 2)) / 2.0
