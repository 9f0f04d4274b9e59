"""What an auditor writes down while a mechanism runs, and what the mechanism claimed beforehand."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np

from fairwave.double_precision import double_precision
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.gaussian import analytic_noise_multiplier


@dataclasses.dataclass(frozen=True)
class Claim:
    """A number of Gaussian releases at a noise multiplier."""

    rounds: int
    multiplier: float
    delta: float

    @classmethod
    def of_total(cls, epsilon: float, rounds: int, delta: float) -> Claim:
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


@dataclasses.dataclass(frozen=True)
class Transcript:
    """Everything in multiples of what one contribution may change, round by round."""

    present: np.ndarray
    """Which canaries were in; canary i shows in coordinate i, if anywhere."""
    alone: np.ndarray
    """Per round and coordinate: what the best placed listener sees added."""
    pooled: np.ndarray
    """The same for all listeners together."""


class Subject(Protocol):
    """A mechanism under audit."""

    @property
    def name(self) -> str:
        """The part of the code that is audited."""

    def run(self, claim: Claim, num_canaries: int, seed: int) -> Transcript:
        """Run the release code with half of the canaries in, chosen at random."""


def coin_flips(num_canaries: int, seed: int) -> np.ndarray:
    """Who is in."""
    return np.random.default_rng(seed).random(num_canaries) < 0.5
