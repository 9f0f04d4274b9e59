"""The convolutional network that work on private learning compares itself on.

Two convolutions, each followed by the largest of four neighbours, and two dense layers: 26,010 parameters for MNIST.
With ReLU it is the network of Opacus' MNIST example; with tanh that of Papernot et al., "Tempered Sigmoid Activations
for Deep Learning with Differential Privacy", AAAI 2021, which keeps gradients short and so loses less to clipping.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.activations import Elementwise
from fairwave.learning.dense import Layer, apply_layer, uniform_layers
from fairwave.learning.image_windows import around, convolved
from fairwave.learning.model import Inputs, Logits
from fairwave.types import Key

FIRST, SECOND, STRIDE, PADDING = 8, 4, 2, 3
"""Sides of the two kernels, the stride of both, and the pixels of zeros around an image."""
HIDDEN = 32


@dataclasses.dataclass(frozen=True)
class PooledConvolutional:
    """A convolution of 8 x 8, one of 4 x 4, both of stride 2, and dense layers of 32 units and of one per class."""

    image_shape: tuple[int, int, int]
    channels: tuple[int, int]
    num_classes: int
    activation: Elementwise

    def init(self, key: Key) -> dict[str, Layer]:
        """Layers of random weights."""
        height, width, colours = self.image_shape
        first, second = self.channels
        flat = _side_left(height) * _side_left(width) * second
        shapes = {
            "first": (FIRST, FIRST, colours, first),
            "second": (SECOND, SECOND, first, second),
            "hidden": (flat, HIDDEN),
            "last": (HIDDEN, self.num_classes),
        }
        return uniform_layers(key, shapes)

    def logits(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        """Unnormalised log probabilities."""
        images = inputs.reshape(inputs.shape[0], *self.image_shape)
        hidden = _pooled(self.activation(_convolved(params["first"], images, PADDING)))
        hidden = _pooled(self.activation(_convolved(params["second"], hidden, 0)))
        hidden = self.activation(apply_layer(params["hidden"], hidden.reshape(inputs.shape[0], -1)))
        return apply_layer(params["last"], hidden)


def fits(image_shape: tuple[int, int, int]) -> bool:
    """Whether anything is left of such an image after both convolutions."""
    return all(_side_left(side) >= 1 for side in image_shape[:2])


def _side_left(side: int) -> int:
    """Pixels along a side after both convolutions and both poolings, each of which takes one."""
    after_first = (side + 2 * PADDING - FIRST) // STRIDE + 1 - 1
    return (after_first - SECOND) // STRIDE + 1 - 1


def _convolved(layer: Layer, images: Array, padding: int) -> Array:
    return convolved(images, layer["weight"], STRIDE, around(padding)) + layer["bias"][None, None, None, :]


def _pooled(images: Array) -> Array:
    """The largest of every pixel and its neighbours to the right and below."""
    rows = jnp.maximum(images[:, :-1], images[:, 1:])
    return jnp.maximum(rows[:, :, :-1], rows[:, :, 1:])
