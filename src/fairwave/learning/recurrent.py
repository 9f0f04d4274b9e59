"""A gated recurrent unit along time, for series of measurements such as those of a phone's sensors.

Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation", EMNLP 2014,
in the form in which the reset gate is applied after the matrix product, which takes one product per sample in time.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.learning.activations import Elementwise
from fairwave.learning.dense import Layer, apply_layer, uniform_layers
from fairwave.learning.model import Inputs, Logits
from fairwave.types import Key

GATES = 3
"""Reset, update and candidate, side by side in this order in the unit's weights."""


@dataclasses.dataclass(frozen=True)
class Recurrent:
    """A dense layer on every sample in time, a gated recurrent unit, and a dense layer on the mean of its states."""

    image_shape: tuple[int, int, int]
    """Samples in time, 1, and measurements in each."""
    channels: tuple[int, int]
    """Units of the first dense layer, and of the recurrent unit's state."""
    num_classes: int
    activation: Elementwise

    def init(self, key: Key) -> dict[str, Layer]:
        """Layers of random weights."""
        units, state = self.channels
        shapes = {
            "first": (self.image_shape[2], units),
            "input": (units, GATES * state),
            "state": (state, GATES * state),
            "last": (state, self.num_classes),
        }
        return uniform_layers(key, shapes)

    def logits(self, params: dict[str, Layer], inputs: Inputs) -> Logits:
        """Unnormalised log probabilities."""
        samples, _, measurements = self.image_shape
        series = inputs.reshape(-1, measurements)
        hidden = self.activation(apply_layer(params["first"], series))
        driven = apply_layer(params["input"], hidden).reshape(inputs.shape[0], samples, -1)

        def one_sample(state: Array, drive: Array) -> tuple[Array, Array]:
            following = next_state(state, drive, apply_layer(params["state"], state))
            return following, following

        start = jnp.zeros((inputs.shape[0], self.channels[1]), driven.dtype)
        _, states = jax.lax.scan(one_sample, start, jnp.swapaxes(driven, 0, 1))
        return apply_layer(params["last"], jnp.mean(states, axis=0))


def next_state(
    state: Float[Array, "sample unit"], drive: Float[Array, "sample gate"], recall: Float[Array, "sample gate"]
) -> Float[Array, "sample unit"]:
    """The state after one more sample in time, from affine maps of that sample (`drive`) and the state (`recall`)."""
    reset_drive, update_drive, candidate_drive = jnp.split(drive, GATES, axis=1)
    reset_recall, update_recall, candidate_recall = jnp.split(recall, GATES, axis=1)
    reset = jax.nn.sigmoid(reset_drive + reset_recall)
    kept = jax.nn.sigmoid(update_drive + update_recall)
    candidate = jnp.tanh(candidate_drive + reset * candidate_recall)
    return (1.0 - kept) * candidate + kept * state


def is_series(image_shape: tuple[int, int, int]) -> bool:
    """Whether inputs of that shape are two or more samples in time."""
    return image_shape[0] >= 2 and image_shape[1] == 1
