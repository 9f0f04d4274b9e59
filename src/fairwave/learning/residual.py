"""A small residual network with group normalisation, for photographs such as those of CIFAR-10.

He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, with one block in each of three stages.
The first convolution halves the image, which makes all that follows four times cheaper.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.activations import Elementwise
from fairwave.learning.dense import Layer, apply_layer, uniform_layers
from fairwave.learning.group_norm import group_norm
from fairwave.learning.image_windows import Images, around, convolved
from fairwave.learning.model import Inputs, Logits
from fairwave.types import Key

SIDE = 3
"""Side of the kernels."""
SMALLEST_IMAGE = 16
"""Pixels along a side that leave 2 x 2 to the last stage; a single pixel may have no variance to be divided by."""
AT_ONCE = 64
"""Images whose windows lie in memory together; more take longer for each."""
STAGES = ("narrow", "middle", "wide")


@dataclasses.dataclass(frozen=True)
class Residual:
    """A convolution, three blocks of two convolutions beside a shortcut, the mean over the image and a dense layer.

    The last two blocks halve the image. Every convolution is followed by a group normalisation instead of a bias.
    """

    image_shape: tuple[int, int, int]
    channels: tuple[int, int]
    """Channels of the first two stages; the third has twice as many as the second."""
    num_classes: int
    activation: Elementwise

    def init(self, key: Key) -> dict[str, Layer]:
        """Layers of random weights."""
        first, second = self.channels
        before, shapes = first, {"stem": (SIDE, SIDE, self.image_shape[2], first)}
        for stage, width in zip(STAGES, (first, second, 2 * second), strict=True):
            shapes[f"{stage}_first"] = (SIDE, SIDE, before, width)
            shapes[f"{stage}_second"] = (SIDE, SIDE, width, width)
            if stage != STAGES[0]:
                shapes[f"{stage}_shortcut"] = (1, 1, before, width)
            before = width
        layers = uniform_layers(key, {"last": (before, self.num_classes), **shapes})
        return {**{name: _normalised_layer(layers[name]["weight"]) for name in shapes}, "last": layers["last"]}

    def logits(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        """Unnormalised log probabilities, a few images at a time where there are many."""
        if inputs.shape[0] <= AT_ONCE:
            return self._together(params, inputs)
        # What lies between layers is computed again for gradients: 1,000 images would hold gigabytes of it.
        one = jax.checkpoint(lambda image: self._together(params, image[None])[0])
        scores: Logits = jax.lax.map(one, inputs, batch_size=AT_ONCE)
        return scores

    def _together(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        images = inputs.reshape(inputs.shape[0], *self.image_shape)
        hidden = self.activation(_normalised(params["stem"], images, 2))
        for stage in STAGES:
            hidden = self._block(params, stage, hidden)
        return apply_layer(params["last"], jnp.mean(hidden, axis=(1, 2)))

    def _block(self, params: dict[str, Layer], stage: str, images: Images) -> Images:
        halved = stage != STAGES[0]
        hidden = self.activation(_normalised(params[f"{stage}_first"], images, 2 if halved else 1))
        hidden = _normalised(params[f"{stage}_second"], hidden, 1)
        shortcut = _normalised(params[f"{stage}_shortcut"], images, 2) if halved else images
        return self.activation(hidden + shortcut)


def _normalised_layer(kernel: Array) -> Layer:
    """A kernel, and the scale and shift of the normalisation after it."""
    scale: Array = jnp.ones(kernel.shape[-1], jnp.float32)
    return {"weight": kernel, "scale": scale, "shift": jnp.zeros_like(scale)}


def _normalised(layer: Layer, images: Images, stride: int) -> Images:
    kernel = layer["weight"]
    outputs = convolved(images, kernel, stride, around(kernel.shape[0] // 2))
    return group_norm(outputs, layer["scale"], layer["shift"])
