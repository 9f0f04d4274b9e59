"""A convolutional network along time, for series of measurements such as those of a phone's sensors."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.learning.activations import Elementwise
from fairwave.learning.dense import Layer, apply_layer, uniform_layers
from fairwave.learning.model import Inputs, Logits
from fairwave.types import Key

FIRST, SECOND = (8, 4), (4, 2)
"""Samples under the kernel of each convolution, and between two of its places."""


@dataclasses.dataclass(frozen=True)
class SeriesConvolutional:
    """Two convolutions, the mean over time, and a dense layer.

    Each convolution is a matrix product of windows, which XLA computes much faster on a CPU than a narrow convolution.
    """

    image_shape: tuple[int, int, int]
    """Samples in time, 1, and measurements in each."""
    channels: tuple[int, int]
    num_classes: int
    activation: Elementwise

    def init(self, key: Key) -> dict[str, Layer]:
        """Layers of random weights."""
        first, second = self.channels
        shapes = {
            "first": (FIRST[0] * self.image_shape[2], first),
            "second": (SECOND[0] * first, second),
            "last": (second, self.num_classes),
        }
        return uniform_layers(key, shapes)

    def logits(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        """Unnormalised log probabilities."""
        samples, _, measurements = self.image_shape
        hidden = inputs.reshape(inputs.shape[0], samples, measurements)
        for name, (width, step) in (("first", FIRST), ("second", SECOND)):
            hidden = self.activation(_convolved(params[name], hidden, width, step))
        return apply_layer(params["last"], jnp.mean(hidden, axis=1))


def long_enough(image_shape: tuple[int, int, int]) -> bool:
    """Whether anything is left of such a series after both convolutions."""
    return image_shape[1] == 1 and _places(_places(image_shape[0], *FIRST), *SECOND) >= 1


def _places(samples: int, width: int, step: int) -> int:
    return (samples - width) // step + 1 if samples >= width else 0


def _convolved(layer: Layer, series: Array, width: int, step: int) -> Array:
    places = _places(series.shape[1], width, step)
    windows = series[:, np.arange(places)[:, None] * step + np.arange(width)]
    flat = windows.reshape(series.shape[0], places, -1)
    return flat @ layer["weight"] + layer["bias"][None, None, :]
