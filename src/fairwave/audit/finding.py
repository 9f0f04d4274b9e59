"""What one test of the audit says, and how several looks at the same thing become one probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

ALARM = 1e-6
"""Probability at most with which one test raises a false alarm."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one test says."""

    test: str
    looks_at: str
    """The property of the release code that the test examines."""
    measured: str
    claimed: str
    probability: float
    """Probability of so much against the claim, or more, if the claim is true."""
    alarm: float = ALARM
    """Probability at most with which the test raises a false alarm; 0 where chance plays no part."""

    @property
    def flagged(self) -> bool:
        """Whether the test refutes the claim; a probability that is not a number does."""
        return not (self.probability > 0.0 and self.probability >= self.alarm)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the tests say about one part of the code."""

    subject: str
    findings: list[Finding]

    @property
    def flagged(self) -> bool:
        """Whether any test refutes the claim."""
        return any(finding.flagged for finding in self.findings)


def worst(probabilities: Mapping[str, float]) -> tuple[str, float]:
    """The name of the least probability, and that times their number: Bonferroni's correction."""
    values = np.asarray(list(probabilities.values()), np.float64)
    # Something that is not a number is the worst of all.
    place = int(np.argmin(np.nan_to_num(values, nan=-1.0)))
    return list(probabilities)[place], float(np.minimum(1.0, values[place] * values.size))


def exact(test: str, looks_at: str, measured: str, claimed: str, holds: bool) -> Finding:
    """A finding of a comparison that involves no chance: it raises no false alarm."""
    return Finding(test, looks_at, measured, claimed, 1.0 if holds else 0.0, alarm=0.0)
