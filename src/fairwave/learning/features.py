"""What a model sees of a sample: its inputs as they are, or features that a device computes of them once.

Features are computed sample by sample. No data but a sample's own enter, so that they change nothing in a privacy
account. Their cost is charged to the device as local iterations, before the first round.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from fairwave.extensions import FEATURES
from fairwave.learning.loss import scaled
from fairwave.learning.scattering import Scattering
from fairwave.scenario.learning_parameters import Learning

PASSES = 3
"""Multiplications of a training step for each parameter and sample: forward, and backward by inputs and by weights."""


@dataclasses.dataclass(frozen=True)
class FeatureKind:
    """Features that scenarios can ask for by name."""

    extends: ClassVar[str] = "features"

    name: str
    summary: str
    """What they are, in a line."""
    compute: Callable[[Learning, np.ndarray], np.ndarray]
    """From the inputs of some samples to their features: each row from the same row alone."""
    num_inputs: Callable[[Learning], int]
    """Values of a sample that they are computed from."""
    multiply_adds: Callable[[Learning], float]
    """Multiplications and additions, in pairs, that a sample's features take."""
    objection: Callable[[Learning], str | None] = lambda learning: None
    """Why a scenario cannot have them, with a remedy; None if it can."""


def featured(learning: Learning, inputs: np.ndarray) -> np.ndarray:
    """What the scenario's model sees of some samples."""
    kind: FeatureKind = FEATURES[learning.features]
    return kind.compute(learning, inputs)


def preparation_iterations(learning: Learning, samples: np.ndarray) -> np.ndarray:
    """What computing the features of so many samples costs a device, in local iterations of the same arithmetic."""
    kind: FeatureKind = FEATURES[learning.features]
    per_iteration = PASSES * learning.num_parameters() * learning.batch_size
    return np.asarray(samples) * kind.multiply_adds(learning) / per_iteration


def _as_they_are(learning: Learning, inputs: np.ndarray) -> np.ndarray:
    return inputs


def _first_layer(learning: Learning) -> int:
    return learning.layer_sizes[0]


def _nothing(learning: Learning) -> float:
    return 0.0


def _scattering_of(learning: Learning) -> Scattering:
    assert learning.image_shape is not None, "checked by the objection"
    return Scattering(learning.image_shape)


def _objection_to_scattering(learning: Learning) -> str | None:
    if learning.image_shape is None:
        return "features 'scattering' need image_shape; give height, width and colours, such as [28, 28, 1]"
    scattering = Scattering(learning.image_shape)
    found = scattering.objection()
    if found is None and learning.layer_sizes[0] != scattering.num_features:
        return (
            f"layer_sizes {list(learning.layer_sizes)} for images of {list(learning.image_shape)}, which have "
            f"{scattering.num_features} scattering features; let layer_sizes begin with {scattering.num_features}"
        )
    return found


none = FeatureKind("none", "The model sees the inputs unchanged.", _as_they_are, _first_layer, _nothing)
scattering = FeatureKind(
    "scattering",
    "The model sees scattering coefficients of images. Each image is normalised by itself.",
    lambda learning, inputs: _scattering_of(learning)(inputs, scaled),
    lambda learning: math.prod(_scattering_of(learning).image_shape),
    lambda learning: _scattering_of(learning).multiply_adds,
    _objection_to_scattering,
)
