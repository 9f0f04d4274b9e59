"""What follows a run while it trains: called at the start, after every round and at the end of each scheme and seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fairwave.scenario.parameters import Scenario


@dataclasses.dataclass(frozen=True)
class Training:
    """One scheme with one seed, as it is about to be trained."""

    scheme: str
    seed: int
    rounds: int
    """Rounds that it is to have in the end."""
    done: int
    """Rounds that are stored already, where a run goes on."""
    scenario: Scenario
    folder: Path | None = None
    """The folder of the run; None if nothing is stored."""

    @property
    def name(self) -> str:
        """A name that is the same when a run goes on, such as `proposed-seed-0`."""
        return f"{self.scheme}-seed-{self.seed}"


class RoundValues(NamedTuple):
    """What a round came to."""

    number: int
    """The round, from 1."""
    values: Mapping[str, float]
    """Numbers by name; see docs/models_and_results.md. Those that are not known are left out."""


class Callback:
    """Follows training; subclasses override what they need.

    A callback is told of a round once the round is stored, from another thread than the one that trains. If it raises
    anything, a warning says so, it is not called again for that scheme and seed, and training goes on.

    Example:
        >>> class Printed(Callback):
        ...     def on_round(self, training, done):
        ...         print(training.name, done.number, sorted(done.values)[:2])
    """

    def on_start(self, training: Training) -> None:
        """Before the first round that is trained, or trained next."""

    def on_round(self, training: Training, done: RoundValues) -> None:
        """After every round."""

    def on_end(self, training: Training, reason: str) -> None:
        """After the last round: `reason` is 'done', a sentence on why it ended early, or 'interrupted'."""
