"""Epsilon of Poisson-sampled Gaussian steps from below, worked out without the accountants that the ledger uses."""

from __future__ import annotations

import numpy as np

POINTS, REACH = 400_000, 14.0
"""Points of the integral over a release's value, and how many stds it reaches."""
GRID = 5e-4
"""Distance of the privacy losses that are told apart; each is rounded down to it."""


def epsilon_from_below(multiplier: float, sampling: float, steps: int, delta: float) -> float:
    """A lower bound on the epsilon of so many steps, for a record that is removed.

    Privacy losses are rounded down and their largest values cut off, both of which can only make epsilon smaller.
    """
    if steps == 0:
        return 0.0
    losses = _composed(*_one_step(multiplier, sampling), steps)
    low, high = 0.0, float(losses[0][-1])
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _delta(losses, middle) > delta else (low, middle)
    return low


def _one_step(multiplier: float, sampling: float) -> tuple[np.ndarray, float]:
    """Probabilities of the privacy losses of one step, from the smallest on in steps of the grid."""
    from scipy.special import ndtr

    edges = np.linspace(-REACH * multiplier, REACH * multiplier + 1.0, POINTS)
    mass = (1.0 - sampling) * np.diff(ndtr(edges / multiplier)) + sampling * np.diff(ndtr((edges - 1.0) / multiplier))
    # The loss grows with the value, so that its value at the left end of an interval is its least there.
    loss = np.log1p(sampling * np.expm1((2.0 * edges[:-1] - 1.0) / (2.0 * multiplier**2)))
    least = float(loss[0])
    return np.bincount(np.floor((loss - least) / GRID).astype(np.int64), mass), least


def _composed(one: np.ndarray, least: float, steps: int) -> np.ndarray:
    """Rows of loss and probability after so many independent steps."""
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(steps * (one.size - 1) + 1)
    mass = np.maximum(irfft(rfft(one, size) ** steps, size), 0.0)
    return np.stack([steps * least + GRID * np.arange(size), mass])


def _delta(losses: np.ndarray, epsilon: float) -> float:
    above = losses[0] > epsilon
    return float(np.sum(losses[1][above] * -np.expm1(epsilon - losses[0][above])))
