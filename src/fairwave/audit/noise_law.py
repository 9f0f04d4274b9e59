"""The law that the noise in every value of a release is claimed to have."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from fairwave.privacy.hardened_noise import grid_step
from fairwave.privacy.noise import Source


@dataclasses.dataclass(frozen=True)
class NoiseLaw:
    """A Gaussian of mean zero, rounded to a grid where the source rounds; in multiples of the clip length."""

    std: float
    step: float = 0.0
    """Distance between the values that the source can return; 0 where that is too small to be seen."""

    @classmethod
    def claimed(cls, source: Source, multiplier: float, clip_norm: float) -> NoiseLaw:
        """The law that a source of noise documents for a multiplier."""
        # The grid of 'exact' has 2^36 steps to a std.
        step = grid_step(multiplier * clip_norm) / clip_norm if source == "hardened" else 0.0
        return cls(multiplier, step)

    @property
    def variance(self) -> float:
        """Variance of one value, that of the rounding included."""
        return self.std**2 + self.step**2 / 12.0

    @property
    def total_std(self) -> float:
        """Square root of the variance."""
        return math.sqrt(self.variance)

    def edges(self, quantiles: np.ndarray) -> np.ndarray:
        """Limits of bins near these quantiles, halfway between values that the source can return."""
        from scipy.special import ndtri

        wanted = self.std * ndtri(quantiles)
        if self.step == 0.0:
            return np.asarray(wanted)
        return np.unique((np.floor(wanted / self.step) + 0.5) * self.step)

    def probabilities(self, edges: np.ndarray) -> np.ndarray:
        """Probability of every bin between, below and above the edges."""
        from scipy.special import ndtr

        # A value on the grid is below an edge halfway between two exactly where the Gaussian before rounding is.
        return np.diff(np.concatenate([[0.0], ndtr(edges / self.std), [1.0]]))
