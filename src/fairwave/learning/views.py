"""Several views of an image as one record: augmentation multiplicity for private training.

In training, the loss of a record is the mean over views of it: the image itself, and the image moved by some pixels.
The views' gradients are averaged before the record's gradient is clipped, so that they cost no privacy (De et al.,
"Unlocking High-Accuracy Differentially Private Image Classification through Scale", 2022). The views are the same for
every image and every step: nothing is drawn, and a simulation and a federation train alike.
"""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.learning.model import Inputs, Labels, Losses, Model, Tree

FARTHEST = 2
"""Pixels by which a view is moved at most, along either side."""
PLACES = sorted(
    itertools.product(range(-FARTHEST, FARTHEST + 1), repeat=2), key=lambda move: (move[0] ** 2 + move[1] ** 2, move)
)
"""Moves by rows and columns, the nearest first."""


def views_of(inputs: Inputs, image_shape: tuple[int, int, int], count: int, *, mirrored: bool) -> Array:
    """The first views of every image, with the axis of views first; pixels that are moved in are zero.

    With `mirrored`, every second view is the mirror image of the one before it.
    """
    images = inputs.reshape(inputs.shape[0], *image_shape)
    moves = PLACES[: -(-count // 2)] if mirrored else PLACES[:count]
    found = []
    for rows, columns in moves:
        moved = _moved(_moved(images, 1, rows), 2, columns)
        found += [moved, moved[:, :, ::-1]] if mirrored else [moved]
    return jnp.stack(found[:count]).reshape(count, *inputs.shape)


def with_views(model: Model, image_shape: tuple[int, int, int], count: int, *, mirrored: bool) -> Model:
    """The same model, trained on the mean loss of a record's views."""

    def training_losses(params: Tree, inputs: Inputs, labels: Labels) -> Losses:
        views = views_of(inputs, image_shape, count, mirrored=mirrored)
        return jnp.mean(jax.vmap(lambda some: model.losses(params, some, labels))(views), axis=0)

    # A record's gradient is no longer one outer product per layer.
    return dataclasses.replace(model, training_losses=training_losses, taps=None)


def _moved(images: Array, axis: int, pixels: int) -> Array:
    """Images moved along an axis."""
    size = images.shape[axis]
    padding = [(0, 0)] * images.ndim
    padding[axis] = (max(pixels, 0), max(-pixels, 0))
    return jax.lax.slice_in_dim(jnp.pad(images, padding), max(-pixels, 0), max(-pixels, 0) + size, axis=axis)
