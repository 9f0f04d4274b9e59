"""The scenario as it is audited: its own learning and its own privacy, in a cell in which every message arrives."""

from __future__ import annotations

import dataclasses

from fairwave.learning.models import count_parameters, model_of
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario

NUMBERS_AT_HAND = 60_000_000
"""Gradients of known records are held all at once; together they may have so many numbers."""
LARGEST_BATCH, SMALLEST_BATCH = 128, 4
HOLDINGS = 4
"""The largest holding of a device under audit, in batches."""
LEAST_MOVE = 1e-3
"""Learning rate over batch size, in clip lengths, at least: below, rounding of the model would hide the noise."""
PHYSICAL = (
    "cell.num_devices=8",
    "cell.placement={law='linspace', near_m='50 m', far_m='50 m'}",
    "radio.fading={law='none'}",
    "radio.payload_bits=875000",
    "compute.bits_per_iteration=802816",
)
"""Overrides of the preset 'fair-mlp' under which every device sends in every round."""
QUIET = 0.1
"""Noise multiplier where records are looked at, so that they show."""


@dataclasses.dataclass(frozen=True)
class Change:
    """What an audit changes in a scenario beside its cell."""

    noise_multiplier: float | None = None
    """None for the scenario's own."""
    max_epsilon: float | None = None
    """None for no limit."""
    steps: int | None = 1
    """Local steps in a round; None for as many as the plan says."""


def audited(scenario: Scenario, seed: int, change: Change) -> Scenario:
    """The scenario under audit.

    Distances, channels and processors decide who takes part and not what leaves a device; the penalty of a model
    touches no record; optimizers, the decay of the learning rate and rounding to 8 bits come after all noise. They are
    replaced by what makes releases easy to read.
    """
    limits = () if change.steps is None else ("compute.min_iterations", "compute.max_iterations")
    cell = load_scenario("fair-mlp", [*PHYSICAL, *(f"{limit}={change.steps}" for limit in limits), f"run.seed={seed}"])
    privacy = {"max_epsilon": change.max_epsilon}
    if change.noise_multiplier is not None:
        privacy["noise_multiplier"] = change.noise_multiplier
    size = batch_size(scenario)
    rate = max(scenario.learning.learning_rate, LEAST_MOVE * size / (scenario.privacy.clip_norm or 1.0))
    return cell.model_copy(
        update={
            "learning": scenario.learning.model_copy(
                update={
                    "batch_size": size,
                    "learning_rate": rate,
                    "rate_decay": 1.0,
                    "optimizer": "sgd",
                    "l2": 0.0,
                    "local_accuracy": None,
                    "update_bits": 32,
                }
            ),
            "privacy": scenario.privacy.model_copy(update=privacy),
        }
    )


def batch_size(scenario: Scenario) -> int:
    """The scenario's own expected batch size, or what memory allows."""
    affordable = NUMBERS_AT_HAND // (HOLDINGS * count_parameters(model_of(scenario.learning)))
    return max(SMALLEST_BATCH, min(scenario.learning.batch_size, LARGEST_BATCH, affordable))
