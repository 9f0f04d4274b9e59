"""A small convolutional network: two strided 3 x 3 convolutions and a dense layer."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import Array

from fairwave.learning.activations import Elementwise
from fairwave.learning.dense import Layer, apply_layer, uniform_layers
from fairwave.learning.image_windows import convolved
from fairwave.learning.model import Inputs, Logits
from fairwave.types import Key


@dataclasses.dataclass(frozen=True)
class Convolutional:
    """Each convolution halves the image, so that no pooling is needed."""

    image_shape: tuple[int, int, int]
    channels: tuple[int, int]
    num_classes: int
    activation: Elementwise = jax.nn.relu

    def init(self, key: Key) -> dict[str, Layer]:
        """Layers of random weights."""
        height, width, colours = self.image_shape
        first, second = self.channels
        flat = -(-height // 4) * -(-width // 4) * second
        shapes = {"first": (3, 3, colours, first), "second": (3, 3, first, second), "last": (flat, self.num_classes)}
        return uniform_layers(key, shapes)

    def logits(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        """Unnormalised log probabilities."""
        hidden = inputs.reshape(inputs.shape[0], *self.image_shape)
        for name in ("first", "second"):
            hidden = self.activation(_halve(params[name], hidden))
        return apply_layer(params["last"], hidden.reshape(inputs.shape[0], -1))


def _halve(layer: Layer, images: Array) -> Array:
    # Twice halved, rounding up, is a quarter rounded up, which is what `init` counts on.
    rows, columns = jax.lax.padtype_to_pads(images.shape[1:3], layer["weight"].shape[:2], (2, 2), "SAME")
    return convolved(images, layer["weight"], 2, (rows, columns)) + layer["bias"][None, None, None, :]
