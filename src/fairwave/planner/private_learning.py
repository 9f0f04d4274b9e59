"""Settings of private training for a privacy budget: batch, steps, noise and rate, without any training.

A device has time for so many records in a round, whichever batches they come in. Fewer, larger batches need more noise
per step but leave less of it in the model: what counts is the noise in the mean of all gradients of a run, in each of
its values, which is the multiplier times the clip length over batch size times the root of the number of steps. All
steps together move the model by the rate times their number times that mean, noise included.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from fairwave.double_precision import double_precision
from fairwave.errors import ScenarioError
from fairwave.planner.plan import plan
from fairwave.privacy.calibration import least_multiplier
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario

DRAWS = 200
"""Channels over which the number of iterations in a round is averaged."""
SMALLEST_BATCH, MOST_BATCHES = 16, 8


@dataclasses.dataclass(frozen=True)
class Proposal:
    """One way to spend a privacy budget."""

    batch_size: int
    iterations: float
    """Local iterations in a round, of the device that makes most."""
    steps: int
    """Local iterations of that device over the run."""
    noise_multiplier: float
    learning_rate: float
    """The largest rate at which all steps together go no farther, and leave no more noise in the model, than the
    scenario's own."""
    gradient_noise: float
    """Std of the noise in the mean of all gradients of the run, in each value."""

    def overrides(self) -> list[str]:
        """The proposal as settings of a scenario."""
        return [
            f"learning.batch_size={self.batch_size}",
            f"learning.learning_rate={self.learning_rate:.3g}",
            f"privacy.noise_multiplier={self.noise_multiplier:g}",
        ]


@dataclasses.dataclass(frozen=True)
class Lasting:
    """How long a budget lasts with a scenario's own noise, and the noise with which it lasts for all of its rounds."""

    rounds: int
    """Rounds, at the pace of the device that makes most iterations."""
    noise_multiplier: float
    """The least with which the budget lasts for the scenario's rounds."""


def lasting(scenario: Scenario, epsilon: float, records: int) -> Lasting:
    """What a budget means for a scenario as it is: no other batch, no other pace."""
    mode, privacy = mode_of(scenario.privacy), scenario.privacy.model_copy(update={"max_epsilon": epsilon})
    if not mode.proves:
        raise ScenarioError(
            f"privacy.mode: '{scenario.privacy.mode}' proves nothing, so that no budget can be planned for; take a "
            "scenario in mode 'provable', such as the preset 'fair', or 'device'"
        )
    limited = scenario.model_copy(update={"privacy": privacy})
    with double_precision():
        enforced = mode.enforcement(limited, np.array([records]), scenario.learning.num_parameters())
        budget = enforced.budget
    assert budget is not None, "there is a limit"
    releases = _steps(scenario) if mode.counts_steps else float(scenario.run.num_rounds)
    whole = math.ceil(releases)
    sampling = float(enforced.sampling[0]) if mode.counts_steps else 1.0
    multiplier = least_multiplier(sampling, whole, epsilon, _delta_left(scenario, records, whole))
    return Lasting(int(budget[0] * scenario.run.num_rounds / releases), multiplier)


def propose(
    scenario: Scenario, epsilon: float, records: int, on_progress: Callable[[int, int], None] = lambda done, count: None
) -> list[Proposal]:
    """Proposals for a budget, smallest batch first; those whose fewest iterations miss the deadline are left out."""
    mode = mode_of(scenario.privacy)
    if not mode.counts_steps:
        raise ScenarioError(
            f"privacy.mode: '{scenario.privacy.mode}' has no private steps to plan; take a scenario in mode "
            "'provable', such as the preset 'fair'"
        )
    own_steps = _steps(scenario)
    own_noise = _gradient_noise(scenario, scenario.privacy.noise_multiplier or 1.0, own_steps)
    batches = [SMALLEST_BATCH * 2**power for power in range(MOST_BATCHES) if SMALLEST_BATCH * 2**power <= records]
    found = []
    for number, batch_size in enumerate(batches):
        on_progress(number, len(batches))
        tried = with_batch(scenario, batch_size)
        steps = _steps(tried)
        if not math.isfinite(steps) or steps < 1:
            continue
        whole = math.ceil(steps)
        multiplier = least_multiplier(batch_size / records, whole, epsilon, _delta_left(tried, records, whole))
        noise = _gradient_noise(tried, multiplier, steps)
        found.append(
            Proposal(
                batch_size=batch_size,
                iterations=steps / scenario.run.num_rounds,
                steps=whole,
                noise_multiplier=multiplier,
                learning_rate=scenario.learning.learning_rate * own_steps / steps * min(1.0, own_noise / noise),
                gradient_noise=noise,
            )
        )
    if not found:
        raise ScenarioError(
            f"data: no batch from {SMALLEST_BATCH} to {records} records fits the deadline; lower "
            "compute.min_iterations, or lengthen cell.deadline_s"
        )
    return found


def _gradient_noise(scenario: Scenario, multiplier: float, steps: float) -> float:
    """Std of the noise in the mean of all gradients of a run, in each value."""
    return multiplier * (scenario.privacy.clip_norm or 1.0) / (scenario.learning.batch_size * math.sqrt(steps))


def with_batch(scenario: Scenario, batch_size: int) -> Scenario:
    """The same scenario with other batches; the time of an iteration follows them where the scenario leaves it open."""
    learning = scenario.learning.model_copy(update={"batch_size": batch_size})
    return scenario.model_copy(update={"learning": learning})


def _steps(scenario: Scenario) -> float:
    """Local iterations over the run of the device that makes most; NaN where none can take part."""
    planned = plan(scenario, ["proposed"], draws=DRAWS)
    taken = planned["local_iterations"] * (1.0 - planned["outage_fraction"])
    return float(np.nanmax(taken.values, initial=0.0)) * scenario.run.num_rounds or math.nan


@double_precision()
def _delta_left(scenario: Scenario, records: int, steps: int) -> float:
    """What overflowing batches and rounding leave of delta."""
    enforced = mode_of(scenario.privacy).enforcement(scenario, np.array([records]), scenario.learning.num_parameters())
    left = scenario.privacy.delta - steps * float(enforced.lost_delta.max())
    if left <= 0.0:
        raise ScenarioError(f"privacy.delta: {scenario.privacy.delta:g} is lost in {steps} steps; make it larger")
    return left
