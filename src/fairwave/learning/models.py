"""The models that a scenario can name."""

from __future__ import annotations

import functools

from fairwave.learning.convolution import Convolutional
from fairwave.learning.dense import Dense
from fairwave.learning.model import Model, classifier
from fairwave.learning.precision import computed_in
from fairwave.scenario.learning_parameters import Learning, Precision


def model_of(learning: Learning) -> Model:
    """The scenario's model; the same object for the same network, so that it is compiled once."""
    shape = learning.image_shape if learning.model == "cnn" else None
    return _built(learning.layer_sizes, shape, learning.channels, learning.l2, learning.precision)


@functools.cache
def _built(
    layer_sizes: tuple[int, ...],
    image_shape: tuple[int, int, int] | None,
    channels: tuple[int, int],
    l2: float,
    precision: Precision,
) -> Model:
    if image_shape is not None:
        convolutional = Convolutional(image_shape, channels, layer_sizes[-1])
        return classifier(convolutional.init, computed_in(precision, convolutional.logits), l2)
    dense = Dense(layer_sizes)
    return classifier(dense.init, computed_in(precision, dense.logits), l2, computed_in(precision, dense.taps))
