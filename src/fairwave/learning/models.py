"""The models that a scenario can name."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import jax
import numpy as np

from fairwave.extensions import MODELS
from fairwave.learning.activations import ACTIVATIONS
from fairwave.learning.convolution import Convolutional
from fairwave.learning.dense import Dense
from fairwave.learning.model import Model, classifier, cross_entropy, half_squared_error, regressor
from fairwave.learning.pooled_convolution import PooledConvolutional, fits
from fairwave.learning.precision import computed_in
from fairwave.learning.recurrent import Recurrent, is_series
from fairwave.learning.residual import SMALLEST_IMAGE, Residual
from fairwave.learning.series_convolution import SeriesConvolutional, long_enough
from fairwave.learning.views import with_views
from fairwave.scenario.learning_parameters import Activation, Learning, Precision
from fairwave.scenario.targets import Target


@dataclasses.dataclass(frozen=True)
class ModelKind:
    """A model that scenarios can ask for by name."""

    extends: ClassVar[str] = "models"

    name: str
    summary: str
    """What it is, in a line."""
    build: Callable[[Learning], Model]
    """From a scenario's parameters to the model; called once for the same parameters."""
    objection: Callable[[Learning], str | None] = lambda learning: None
    """Why the parameters do not fit the model, with a remedy; None if they do."""
    target: Target = "class"
    """What it predicts, which has to be what the data have as labels."""

    def num_parameters(self, learning: Learning) -> int:
        """Numbers in the model."""
        return count_parameters(_built(self, learning))


def model_of(learning: Learning) -> Model:
    """The scenario's model; the same object for the same network, so that it is compiled once."""
    return _built(MODELS[learning.model], learning)


@functools.cache
def _built(kind: ModelKind, learning: Learning) -> Model:
    built = kind.build(learning)
    if learning.views == 1 or learning.image_shape is None:
        return built
    return _viewed(built, learning.image_shape, learning.views, learning.mirrored_views)


@functools.cache
def _viewed(model: Model, image_shape: tuple[int, int, int], views: int, mirrored: bool) -> Model:
    return with_views(model, image_shape, views, mirrored=mirrored)


def count_parameters(model: Model) -> int:
    """Numbers in a model."""
    leaves = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
    return sum(int(np.prod(leaf.shape)) for leaf in leaves)


# Cached by what describes the network alone: a sweep over learning rates must not compile it anew.


def _dense(learning: Learning, target: Target = "class") -> Model:
    return _dense_network(learning.layer_sizes, learning.activation, learning.l2, learning.precision, target)


@functools.cache
def _dense_network(
    layer_sizes: tuple[int, ...], activation: Activation, l2: float, precision: Precision, target: Target
) -> Model:
    loss, build = {"class": (cross_entropy, classifier), "number": (half_squared_error, regressor)}[target]
    dense = Dense(layer_sizes, ACTIVATIONS[activation], loss)
    return build(dense.init, computed_in(precision, dense.logits), l2, computed_in(precision, dense.taps))


Network: TypeAlias = Convolutional | PooledConvolutional | SeriesConvolutional | Residual | Recurrent
NETWORKS: dict[str, type[Network]] = {
    "cnn": Convolutional,
    "pooled_cnn": PooledConvolutional,
    "series_cnn": SeriesConvolutional,
    "resnet": Residual,
    "gru": Recurrent,
}
"""Networks of inputs that have a shape, with two widths."""


def _shaped(learning: Learning) -> Model:
    shape = learning.image_shape or (1, 1, learning.layer_sizes[0])
    sizes = (shape, learning.channels, learning.layer_sizes[-1])
    return _shaped_network(learning.model, sizes, learning.activation, learning.l2, learning.precision)


@functools.cache
def _shaped_network(
    name: str,
    sizes: tuple[tuple[int, int, int], tuple[int, int], int],
    activation: Activation,
    l2: float,
    precision: Precision,
) -> Model:
    built = NETWORKS[name](*sizes, ACTIVATIONS[activation])
    return classifier(built.init, computed_in(precision, built.logits), l2)


def _two_layers(learning: Learning) -> str | None:
    if len(learning.layer_sizes) == 2:
        return None
    return f"layer_sizes {list(learning.layer_sizes)} for model '{learning.model}'; give two: inputs and classes"


def _one_output(learning: Learning) -> str | None:
    if learning.layer_sizes[-1] == 1:
        return None
    return (
        f"layer_sizes {list(learning.layer_sizes)} for model '{learning.model}', which predicts one number; let them "
        "end with 1"
    )


def _an_image(learning: Learning) -> str | None:
    if learning.image_shape is None or math.prod(learning.image_shape) != learning.layer_sizes[0]:
        return (
            f"image_shape {learning.image_shape} for {learning.layer_sizes[0]} inputs; give height, width and colours, "
            "such as [28, 28, 1]"
        )
    return _two_layers(learning)


def _a_large_image(learning: Learning) -> str | None:
    objection = _an_image(learning)
    if objection is None and learning.image_shape is not None and not fits(learning.image_shape):
        return (
            f"image_shape {list(learning.image_shape)} is too small for model 'pooled_cnn'; use 'cnn', or larger images"
        )
    return objection


def _a_photograph(learning: Learning) -> str | None:
    objection = _an_image(learning)
    if objection is None and learning.image_shape is not None and min(learning.image_shape[:2]) < SMALLEST_IMAGE:
        return (
            f"image_shape {list(learning.image_shape)} is too small for model 'resnet'; use 'cnn', or images of "
            f"{SMALLEST_IMAGE} x {SMALLEST_IMAGE} pixels or more"
        )
    return objection


def _a_series(learning: Learning) -> str | None:
    objection = _an_image(learning)
    if objection is None and learning.image_shape is not None and not long_enough(learning.image_shape):
        return (
            f"image_shape {list(learning.image_shape)} for model 'series_cnn'; give samples in time (20 or more), 1, "
            "and measurements in each, such as [128, 1, 6]"
        )
    return objection


def _samples_in_time(learning: Learning) -> str | None:
    objection = _an_image(learning)
    if objection is None and learning.image_shape is not None and not is_series(learning.image_shape):
        return (
            f"image_shape {list(learning.image_shape)} for model 'gru'; give samples in time (2 or more), 1, and "
            "measurements in each, such as [128, 1, 6]"
        )
    return objection


mlp = ModelKind("mlp", "This model has dense layers.", _dense)
softmax = ModelKind(
    "softmax", "This is softmax regression, which is strongly convex with learning.l2.", _dense, _two_layers
)
regression = ModelKind(
    "regression",
    "This model has dense layers, one output and half the squared error as loss. It is for data.target 'number'.",
    functools.partial(_dense, target="number"),
    _one_output,
    target="number",
)
cnn = ModelKind(
    "cnn",
    "This model has two strided 3 x 3 convolutions and a dense layer.",
    _shaped,
    _an_image,
)
pooled_cnn = ModelKind(
    "pooled_cnn",
    "This model has 8 x 8 and 4 x 4 convolutions with pooling and two dense layers, as is common in private learning.",
    _shaped,
    _a_large_image,
)
series_cnn = ModelKind(
    "series_cnn",
    "This model has two convolutions along time, the mean over time and a dense layer. It is for sensor data.",
    _shaped,
    _a_series,
)
resnet = ModelKind(
    "resnet",
    "This is a residual network of seven convolutions with group normalisation. It is for photographs.",
    _shaped,
    _a_photograph,
)
gru = ModelKind(
    "gru",
    "This model has a gated recurrent unit along time, and dense layers before and after it. It is for sensor data.",
    _shaped,
    _samples_in_time,
)
