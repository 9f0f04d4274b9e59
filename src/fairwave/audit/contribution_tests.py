"""Tests of what records add to a sum: as much as their clipped gradients, and never more than the clip length."""

from __future__ import annotations

import math

import numpy as np

from fairwave.audit.finding import Finding, worst
from fairwave.audit.noise_law import NoiseLaw
from fairwave.audit.noise_tests import Leaves, two_sided


def agreement(
    released: dict[str, np.ndarray], expected: dict[str, np.ndarray], law: NoiseLaw, leaves: Leaves
) -> Finding:
    """Whether sums equal the sums of clipped gradients that were worked out independently, leaf by leaf.

    In the direction of the expected sum, noise has the std of a single value: a sum of many records shows by how much
    each of them was scaled.
    """
    from scipy.special import ndtr

    found, ratios = {}, {}
    for name, total in expected.items():
        for leaf, part in {**leaves, "the whole": slice(None)}.items():
            length = float(np.linalg.norm(total[part]))
            if length < law.std:
                continue
            along = float(released[name][part] @ total[part]) / length
            found[f"{leaf}, {name}"] = float(2.0 * ndtr(-abs(along - length) / law.total_std))
            ratios[f"{leaf}, {name}"] = along / length
    where, probability = worst(found)
    return Finding(
        "sums of clipped gradients",
        "whether each leaf of a sum is that of the clipped gradients, worked out independently",
        f"{ratios[where]:.4f} of the expected sum in {where}, the most doubtful",
        "1 everywhere",
        probability,
    )


def leftovers(released: dict[str, np.ndarray], expected: dict[str, np.ndarray], law: NoiseLaw) -> Finding:
    """Whether a sum less the expected one is noise of the claimed variance and nothing else."""
    energies = {name: float(np.sum((released[name] - total) ** 2)) / law.variance for name, total in expected.items()}
    sizes = {name: total.size for name, total in expected.items()}
    where, probability = worst({name: float(two_sided(energies[name], sizes[name])) for name in energies})
    return Finding(
        "beside the clipped gradients",
        "whether anything but noise is left when the expected sum is taken away",
        f"std {math.sqrt(energies[where] / sizes[where]):.4f} of the noise's for {where}, the most doubtful",
        "1 everywhere",
        probability,
    )


def sensitivity(energies: np.ndarray, counts: np.ndarray, records: int, law: NoiseLaw, names: list[str]) -> Finding:
    """Whether equal records, each of which may add the clip length, add up to more than that.

    `energies` are squared lengths of sums, `counts` the number of values that could be read in each.
    """
    bound = records**2 / law.variance
    excess = np.maximum(energies / law.variance - (counts + bound), 0.0)
    # Birge's inequality for the upper tail of a noncentral chi-square: exact for all parameters, a little too careful.
    spread = counts + 2.0 * bound
    chances = np.exp(-(((np.sqrt(spread + 2.0 * excess) - np.sqrt(spread)) / 2.0) ** 2))
    chances = np.where(np.isfinite(energies), chances, 0.0)
    lengths = np.sqrt(np.maximum(energies - counts * law.variance, 0.0)) / records
    where, probability = worst({f"{name}": float(p) for name, p in zip(names, chances, strict=True)})
    return Finding(
        "sensitivity to hostile copies",
        "length of what one record adds, over copies of the model that were made to break clipping",
        f"at most {np.max(lengths):.4f} of the clip length (most doubtful: {where})",
        "1 at most",
        probability,
    )


def inclusion(shown: np.ndarray, taken: np.ndarray, covariance: np.ndarray) -> Finding:
    """Whether a record that is in the batch adds its gradient once, and one that is not adds nothing.

    `shown` estimates each record's weight per step, with this covariance, about which the noise alone decides.
    """
    energy, looks = 0.0, 0
    weights = []
    for values, who in zip(shown, taken, strict=True):
        for group, wanted in ((who, 1.0), (~who, 0.0)):
            if group.any():
                mean = group / group.sum()
                energy += (values @ mean - wanted) ** 2 / float(mean @ covariance @ mean)
                looks += 1
        weights.append(float(values[who].mean()) if who.any() else 1.0)
    return Finding(
        "weight of a record",
        "whether a record in the batch counts once, and any other not at all, in every step",
        f"weights of steps from {min(weights):.3f} to {max(weights):.3f}",
        "1, and 0 for the others",
        float(two_sided(energy, looks)),
    )
