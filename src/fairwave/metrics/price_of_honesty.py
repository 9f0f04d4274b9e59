"""What strategies bring a device against its honest self, and the best of them: the price of honesty."""

from __future__ import annotations

import dataclasses

import numpy as np

from fairwave.metrics.intervals import Interval, interval

HARDLY_WORSE = 0.02
"""Loss of a copy, as a share, that counts as hardly worse: whoever saves energy at that has gained."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a strategy brings its device, against its honest self, seed by seed."""

    strategy: str
    """The strategy in words."""
    utility_gain: np.ndarray
    """Gain in the paper's utility, with the deviation that the device received, as a share of the honest one."""
    loss_change: np.ndarray
    """Loss of its copy at the end over that of its honest self, less 1: positive is worse."""
    energy_saved: np.ndarray
    """Share of its honest self's energy that it does not spend."""
    most_gain: np.ndarray
    """The largest gain in utility that any strategy could have, known or not, from the most that a round is worth."""

    @property
    def cheap_gain(self) -> float:
        """Energy that it saves with a copy that is hardly worse; none if its copy is worse than that."""
        worse = float(np.mean(self.loss_change)) > HARDLY_WORSE
        return 0.0 if worse else float(np.mean(self.energy_saved))


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the search found, best in utility first, and what the best are worth on fresh seeds."""

    tried: list[Outcome]
    best_utility: Outcome
    """The strategy with the largest gain in utility, on fresh seeds."""
    best_saving: Outcome
    """The strategy that saves most energy with a copy that is hardly worse, on fresh seeds."""

    @property
    def price_of_honesty(self) -> Interval:
        """What the best strategy gains in utility, in per cent, on seeds that the search has not seen."""
        return interval(100.0 * self.best_utility.utility_gain)

    @property
    def bound(self) -> Interval:
        """What no strategy can exceed, in per cent of utility, on the same seeds."""
        return interval(100.0 * self.best_utility.most_gain)
