"""The fewest iterations of a device: what the scenario asks for, and what Theorem 1 asks for a local accuracy."""

from __future__ import annotations

import math

import numpy as np

from fairwave.errors import ScenarioError
from fairwave.policy.convergence import contraction, iterations_for_accuracy
from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.scenario.quantity import FloatColumn


def least_iterations(scenario: Scenario, values: DeviceValues) -> FloatColumn:
    """The fewest iterations of every device; no axis if all share them."""
    given = values("min_iterations")
    return np.maximum(0.0 if given is None else given, _for_accuracy(scenario.learning))


def _for_accuracy(learning: Learning) -> float:
    """Whole iterations after which the local problem is solved to the accuracy that is asked for; 1 if none is."""
    smoothness, convexity = learning.smoothness, learning.strong_convexity
    if learning.local_accuracy is None or smoothness is None or convexity is None:
        return 1.0
    factor = contraction(
        learning.convergence,
        learning_rate=learning.learning_rate,
        smoothness=smoothness,
        strong_convexity=convexity,
    )
    needed = iterations_for_accuracy(learning.local_accuracy, factor)
    if math.isinf(needed):
        raise ScenarioError(
            f"learning.local_accuracy: Theorem 1 as '{learning.convergence}' gives no number of iterations for "
            f"{learning.local_accuracy:g}: with learning_rate {learning.learning_rate:g} and smoothness {smoothness:g} "
            f"its factor is {factor:g}; lower the learning rate below {2.0 / smoothness:g}"
        )
    return float(math.ceil(needed))
