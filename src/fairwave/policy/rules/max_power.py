"""Benchmark, as the paper words it: the maximum number of iterations possible, at full power."""

from __future__ import annotations

from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem
from fairwave.policy.rule import rule


@rule("The device uses full power and does all iterations that fit, as the paper words its benchmark.")
def max_power(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """Full power, and all the iterations that it leaves time for."""
    return Choice(iterations=problem.most_iterations, log_snr=problem.max_log_snr)
