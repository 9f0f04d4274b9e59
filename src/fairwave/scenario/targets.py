"""What the labels of data are: classes, or numbers; and what a scenario cannot ask for without classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from fairwave.extensions import MODELS
from fairwave.scenario.partition_laws import Dirichlet, Rare, Shards

if TYPE_CHECKING:
    from fairwave.scenario.parameters import Scenario

Target = Literal["class", "number"]


def target_objections(scenario: Scenario) -> Iterator[str]:
    """Why labels of that kind do not fit the rest of the scenario, each with a remedy."""
    learning, data = scenario.learning, scenario.data
    predicted: Target = MODELS[learning.model].target
    if predicted != data.target:
        fitting = " or ".join(f"'{name}'" for name, kind in MODELS.items() if kind.target == data.target)
        kind = "numbers" if predicted == "number" else "classes"
        yield (
            f"data.target '{data.target}' with learning.model '{learning.model}', which predicts {kind}; set "
            f"data.target to '{predicted}', or choose {fitting}"
        )
    if data.target == "class":
        return
    if isinstance(data.partition, Dirichlet | Rare | Shards):
        yield (
            f"data.partition '{data.partition.law}' shares samples out by class, and data.target is 'number'; choose "
            "iid, quantity, file, users or own"
        )
    if data.label_noise != 0.0:
        yield "data.label_noise replaces classes, and data.target is 'number'; leave it out"
    if data.classes:
        yield f"data.classes names {len(data.classes)} classes, and data.target is 'number'; leave one of them out"
    if scenario.run.target_accuracy is not None:
        yield (
            f"run.target_accuracy {scenario.run.target_accuracy:g} with data.target 'number', which has no accuracy; "
            "use run.target_loss, half the mean squared error"
        )
    if scenario.privacy.publish_class_counts:
        yield "privacy.publish_class_counts is true, and data.target 'number' has no classes; leave it out"
