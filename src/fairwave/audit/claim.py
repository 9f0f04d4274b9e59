"""What a mechanism with canaries claims beforehand, and which of them are in."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from fairwave.double_precision import double_precision
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.gaussian import analytic_noise_multiplier

DELTA = 1e-9
"""Delta of what canaries are held against. Gaussian releases have an epsilon for every delta, and with that of a
scenario, often 1e-5, the bound that assumes nothing could never be as sure as a test of the audit has to be."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A number of Gaussian releases at a noise multiplier."""

    rounds: int
    multiplier: float
    delta: float = DELTA

    @classmethod
    def of_total(cls, epsilon: float, rounds: int, delta: float = DELTA) -> Claim:
        """The claim whose total is that epsilon."""
        import jax.numpy as jnp

        with double_precision():
            one = float(analytic_noise_multiplier(jnp.asarray(epsilon), delta))
        return cls(rounds, one * math.sqrt(rounds), delta)

    @property
    def epsilon(self) -> float:
        """Total of all releases."""
        return epsilon_of({(self.multiplier, 1.0): self.rounds}, self.delta)

    @property
    def separation(self) -> float:
        """How many standard deviations the sum of all releases moves if one contribution is in all of them."""
        return math.sqrt(self.rounds) / self.multiplier


def coin_flips(num_canaries: int, seed: int) -> np.ndarray:
    """Who is in."""
    return np.random.default_rng(seed).random(num_canaries) < 0.5
