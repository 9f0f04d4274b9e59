"""A stored model as a file for other tools, with what has to be known about it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
from pathlib import Path

from fairwave.errors import ArgumentError
from fairwave.learning.model_files import ENDINGS, write_arrays
from fairwave.learning.named_arrays import NamedArrays
from fairwave.learning.onnx_files import ENDING, write_onnx
from fairwave.privacy.exposure import exposures
from fairwave.privacy.ledger import Ledger
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.order import Order, Track
from fairwave.scenario.learning_parameters import Learning

MODEL_ENDINGS = (*ENDINGS, ENDING)
"""Endings of files that a model can be written to."""


@dataclasses.dataclass(frozen=True)
class ExportedModel:
    """A model that leaves its run."""

    order: Order
    track: Track
    round: int
    """After which it was, from 1."""
    device: int | None
    """The device whose copy it is; None for the access point's own model."""
    arrays: NamedArrays
    ledger: Ledger
    """Everything that its scheme and seed have released."""

    def write(self, path: Path) -> None:
        """Write it; the ending of the file's name says in which format."""
        ending = path.suffix.lower()
        if ending not in MODEL_ENDINGS:
            raise ArgumentError(f"{path}: unknown ending '{path.suffix}'; choose from {', '.join(MODEL_ENDINGS)}")
        if ending == ENDING:
            write_onnx(path, self.order.scenario.learning, self.arrays, self.metadata())
        else:
            write_arrays(path, self.arrays, self.metadata())

    def in_words(self) -> str:
        """Which model it is."""
        whose = "the access point's model" if self.device is None else f"the copy of device {self.device}"
        return f"{whose} under {self.track.scheme} with seed {self.track.seed} after round {self.round}"

    def metadata(self) -> dict[str, str]:
        """What goes with the parameters: where they come from, what they take and give, and what they give away."""
        scenario = self.order.scenario
        learning = scenario.learning
        described = {
            "fairwave": importlib.metadata.version("fairwave"),
            "scheme": self.track.scheme,
            "seed": str(self.track.seed),
            "round": str(self.round),
            "copy_of": "access point" if self.device is None else f"device {self.device}",
            "model": learning.model,
            "activation": learning.activation,
            "layer_sizes": json.dumps(learning.layer_sizes),
            "input_shape": json.dumps([learning.layer_sizes[0]]),
            "image_shape": json.dumps(learning.image_shape),
            "input": _input_in_words(learning),
            "features": learning.features,
            "target": scenario.data.target,
            "classes": json.dumps(scenario.data.classes or list(range(learning.layer_sizes[-1]))),
            "privacy": json.dumps(self.privacy()),
            "scenario_sha256": hashlib.sha256(scenario.model_dump_json().encode()).hexdigest(),
        }
        if scenario.data.target == "number":
            del described["classes"]
        return described

    def privacy(self) -> dict[str, object]:
        """What is proved about all that was released up to the round, by audience, or that nothing is."""
        privacy = self.order.scenario.privacy
        mode, first = mode_of(privacy), self.order.init_from
        return {
            "mode": mode.name,
            "unit": mode.unit,
            "adjacency": mode.adjacency.value,
            "delta": privacy.delta,
            "epsilon": self.epsilons() or "none proved",
            "claims": [*mode.claims(self.order.scenario), *(() if first is None else (first.caveat(),))],
        }

    def epsilons(self) -> dict[str, float | str] | None:
        """Epsilon by audience, or "infinite"; None where the privacy mode proves nothing."""
        privacy = self.order.scenario.privacy
        if not mode_of(privacy).proves:
            return None
        told = exposures([event for number, event in self.ledger if number < self.round], privacy.delta, None)
        return {one.audience: "infinite" if math.isinf(one.epsilon) else one.epsilon for one in told}


def _input_in_words(learning: Learning) -> str:
    if learning.features != "none":
        return (
            f"{learning.layer_sizes[0]} features '{learning.features}' of a sample as float32; computing them is not "
            "part of the file"
        )
    return f"{learning.layer_sizes[0]} values of a sample as float32: bytes divided by 255, other numbers as they are"
