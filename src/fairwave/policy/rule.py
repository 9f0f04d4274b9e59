"""A rule: how one device chooses its local iterations and its transmit power."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem


@dataclasses.dataclass(frozen=True)
class Rule:
    """A named function of one device: its problem, preferences and effort estimate to its choice."""

    extends: ClassVar[str] = "rules"

    name: str
    summary: str
    """What the device does, in a few words, for tables and help texts."""
    choose: Callable[[DeviceProblem, Preferences, Effort], Choice]

    def __call__(self, problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
        """The device's choice."""
        return self.choose(problem, preferences, effort)


def rule(summary: str) -> Callable[[Callable[[DeviceProblem, Preferences, Effort], Choice]], Rule]:
    """Make a function a rule of the same name."""
    return lambda choose: Rule(choose.__name__, summary, choose)
