"""Tests of releases that contain noise alone: size and shape in every leaf, every release and every value.

`releases` has a row per release and a column per parameter, in multiples of the clip length; `leaves` says which
columns belong to which leaf of the network.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairwave.audit.finding import Finding, worst
from fairwave.audit.noise_law import NoiseLaw

Leaves = Mapping[str, slice]
TAILS = (1e-4, 1e-3)
"""Probabilities of the outermost bins of the shape test, on either side."""
MOST_BINS, LEAST_EXPECTED = 32, 10.0
"""Bins of equal probability in the shape test at most, and the number of values that a bin must be expected to hold."""


def two_sided(energy: np.ndarray | float, count: int) -> np.ndarray:
    """Probability of a chi-square sum so far from its mean on its side, times two."""
    from scipy.special import chdtr, chdtrc

    return np.asarray(2.0 * np.minimum(chdtr(count, energy), chdtrc(count, energy)))


def leaf_scales(releases: np.ndarray, law: NoiseLaw, leaves: Leaves, steps: np.ndarray | None = None) -> Finding:
    """Chi-square test of the variance in every leaf; `steps` is how many releases each row adds up."""
    each = np.ones(releases.shape[0]) if steps is None else np.asarray(steps, np.float64)
    units = (releases**2) / (law.variance * each)[:, None]
    energies = {name: (float(units[:, part].sum()), units[:, part].size) for name, part in leaves.items()}
    leaf, probability = worst({name: float(two_sided(*found)) for name, found in energies.items()})
    energy, count = energies[leaf]
    measured = f"std {np.sqrt(energy / count):.4f} of the claimed in {leaf}, the most doubtful leaf"
    many = "" if steps is None else " over all steps of a round"
    return Finding(
        f"noise per leaf{many}", f"variance of the noise in each leaf{many}", measured, "1 in every leaf", probability
    )


def release_scales(releases: np.ndarray, law: NoiseLaw) -> Finding:
    """Chi-square test of the variance in every release."""
    energies = (releases**2).sum(axis=1) / law.variance
    found = {str(place): float(p) for place, p in enumerate(two_sided(energies, releases.shape[1]))}
    place, probability = worst(found)
    ratio = np.sqrt(energies[int(place)] / releases.shape[1])
    return Finding(
        "noise per release",
        "variance of the noise in each device's every round",
        f"std {ratio:.4f} of the claimed in the most doubtful of {releases.shape[0]}",
        "1 in every release",
        probability,
    )


def value_scales(releases: np.ndarray, law: NoiseLaw) -> Finding:
    """Chi-square test of the variance of every single parameter over all releases."""
    energies = (releases**2).sum(axis=0) / law.variance
    chances = two_sided(energies, releases.shape[0])
    place = int(np.argmin(np.nan_to_num(chances, nan=-1.0)))
    ratio = np.sqrt(energies[place] / releases.shape[0])
    return Finding(
        "noise per value",
        "variance of the noise in every single parameter",
        f"std {ratio:.3f} of the claimed in parameter {place}, the most doubtful",
        "1 in every parameter",
        float(np.minimum(1.0, chances[place] * chances.size)),
    )


def leaf_shapes(releases: np.ndarray, law: NoiseLaw, leaves: Leaves) -> Finding:
    """Chi-square test of the counts in bins, tails included, against the Gaussian in every leaf."""
    from scipy.special import chdtrc

    found, distances = {}, {}
    for name, part in leaves.items():
        values = releases[:, part].ravel()
        edges = _bins(law, values.size)
        expected = values.size * law.probabilities(edges)
        if not np.isfinite(values).all():
            found[name], distances[name] = 0.0, float("inf")
            continue
        counts = np.bincount(np.searchsorted(edges, values), minlength=expected.size)
        distances[name] = float(np.sum((counts - expected) ** 2 / expected))
        found[name] = float(chdtrc(expected.size - 1, distances[name]))
    leaf, probability = worst(found)
    return Finding(
        "shape of the noise",
        "Gaussian law in each leaf, tails included",
        f"chi-square {distances[leaf]:.1f} in {leaf}, the most doubtful leaf",
        f"about {_bins(law, releases[:, leaves[leaf]].size).size}",
        probability,
    )


def _bins(law: NoiseLaw, count: int) -> np.ndarray:
    """Edges of equally probable bins and of the tails, as many as so many values fill."""
    bins = int(np.clip(count / LEAST_EXPECTED, 2, MOST_BINS))
    tails = [tail for tail in TAILS if tail * count >= LEAST_EXPECTED]
    inner = np.arange(1, bins) / bins
    return law.edges(np.sort(np.concatenate([tails, inner, [1.0 - tail for tail in tails]])))
