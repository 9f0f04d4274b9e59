"""The fewest iterations from a local accuracy, as Theorem 1 prints it and as it can be proved."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairwave
from fairwave.errors import ScenarioError
from fairwave.policy.fleet import fleet
from fairwave.policy.least_iterations import least_iterations
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues

RATE, SMOOTH, CONVEX = 0.01, 20.0, 1.5


def scenario(*overrides: str) -> Scenario:
    constants = (f"learning.smoothness={SMOOTH}", f"learning.strong_convexity={CONVEX}")
    return fairwave.load_scenario("paper", [*constants, *overrides])


def needed(*overrides: str) -> float:
    given = scenario(*overrides)
    return float(least_iterations(given, DeviceValues(given)))


@pytest.mark.parametrize("accuracy", [0.9, 0.1, 1e-3])
def test_both_forms_are_the_printed_formulas(accuracy):
    printed = math.log(accuracy) / math.log(RATE**2 * SMOOTH**2 / 2 - RATE * SMOOTH + 1)
    proved = math.log(accuracy) / math.log(1 - 2 * CONVEX * RATE + CONVEX * SMOOTH * RATE**2)
    least = "compute.min_iterations=1"
    assert needed(f"learning.local_accuracy={accuracy}", "learning.convergence=printed", least) == math.ceil(printed)
    assert needed(f"learning.local_accuracy={accuracy}", least) == math.ceil(proved)


def test_the_larger_of_what_is_asked_for_counts():
    assert needed("learning.local_accuracy=0.999") == 10.0  # compute.min_iterations of the paper
    assert needed("learning.local_accuracy=0.5") == 26.0
    each = scenario("learning.local_accuracy=0.5", "cell.num_devices=2", "compute.min_iterations=[10, 40]")
    assert least_iterations(each, DeviceValues(each)).tolist() == [26.0, 40.0]


def test_devices_plan_with_it():
    asked = scenario("learning.local_accuracy=0.2")
    assert float(fleet(asked, DeviceValues(asked)).device.min_iterations) == 59.0
    frugal = ("learning.local_accuracy=0.2", "utility.required_iterations=1")
    planned = fairwave.plan(scenario(*frugal), ["least_energy"], draws=4)
    assert np.asarray(planned["local_iterations"]).min() == 59.0


def test_an_accuracy_that_no_iterations_reach_is_refused():
    with pytest.raises(
        ScenarioError, match=r"'corrected' gives no number of iterations for 0.1: .*learning rate below 0.1"
    ):
        needed("learning.local_accuracy=0.1", "learning.learning_rate=0.2")


def test_an_accuracy_without_constants_is_refused():
    with pytest.raises(ScenarioError, match=r"local_accuracy 0.1 needs the constants of Theorem 1"):
        fairwave.load_scenario("paper", ["learning.local_accuracy=0.1"])
