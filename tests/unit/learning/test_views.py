"""Views of images as one record, against NumPy and against gradients of the views one by one."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.double_precision import double_precision
from fairwave.errors import ScenarioError
from fairwave.learning.loss import mean_loss
from fairwave.learning.model import Model, Tree
from fairwave.learning.models import model_of
from fairwave.learning.per_sample import scaled_sum
from fairwave.learning.views import PLACES, views_of
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.loading import load_scenario

SHAPE = (6, 5, 2)
IMAGES = [
    *("learning.model=softmax", "learning.layer_sizes=[60, 3]", "learning.image_shape=[6, 5, 2]"),
    "radio.payload_bits=unset",
]


def by_hand(images: np.ndarray, rows: int, columns: int, mirror: bool) -> np.ndarray:
    moved = np.zeros_like(images)
    for row in range(images.shape[1]):
        for column in range(images.shape[2]):
            if 0 <= row - rows < images.shape[1] and 0 <= column - columns < images.shape[2]:
                moved[:, row, column] = images[:, row - rows, column - columns]
    return moved[:, :, ::-1] if mirror else moved


def own_loss(model: Model, params: Tree, view: jax.Array, label: jax.Array) -> jax.Array:
    return model.losses(params, view[None], label[None])[0]


@pytest.mark.parametrize(("count", "mirrored"), [(1, False), (7, False), (25, False), (2, True), (9, True)])
def test_views_are_the_image_moved_and_mirrored(count, mirrored):
    images = np.random.default_rng(0).random((3, *SHAPE), np.float32)
    found = np.asarray(views_of(jnp.asarray(images.reshape(3, -1)), SHAPE, count, mirrored=mirrored))
    for number in range(count):
        place = PLACES[number // 2 if mirrored else number]
        expected = by_hand(images, *place, mirror=mirrored and number % 2 == 1)
        np.testing.assert_array_equal(found[number].reshape(images.shape), expected)
    assert PLACES[0] == (0, 0) and len(set(PLACES)) == 25


def test_a_records_gradient_is_the_mean_over_its_views_and_is_then_clipped():
    plain = model_of(load_scenario("small", IMAGES).learning)
    viewed = model_of(load_scenario("small", [*IMAGES, "learning.views=5"]).learning)
    rng = np.random.default_rng(1)
    inputs, labels = jnp.asarray(rng.random((4, 60), np.float32)), jnp.asarray([0, 2, 1, 2])
    bound = 0.3
    with double_precision():
        params = plain.init(jax.random.key(0))
        factor = functools.partial(clip_factor, bound=bound)
        counted = jnp.asarray([True, True, False, True])
        found = scaled_sum(viewed, params, inputs, labels, counted, factor=factor, bound=bound)
    total = [np.zeros(leaf.shape) for leaf in jax.tree.leaves(params)]
    for record in (0, 1, 3):
        views = views_of(inputs[record][None], SHAPE, 5, mirrored=False)[:, 0]
        own = functools.partial(own_loss, plain, label=labels[record])
        each = [jax.grad(own)(params, view) for view in views]
        mean = [
            np.mean([np.asarray(leaf, float) for leaf in leaves], axis=0)
            for leaves in zip(*map(jax.tree.leaves, each), strict=True)
        ]
        length = np.sqrt(sum((leaf**2).sum() for leaf in mean))
        assert length > bound  # so that clipping is seen
        total = [so_far + leaf * bound / length for so_far, leaf in zip(total, mean, strict=True)]
    for leaf, expected in zip(jax.tree.leaves(found), total, strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-4, atol=1e-6)


def test_views_are_for_training_alone():
    plain = model_of(load_scenario("small", IMAGES).learning)
    viewed = model_of(load_scenario("small", [*IMAGES, "learning.views=3"]).learning)
    params, inputs = plain.init(jax.random.key(0)), jnp.asarray(np.random.default_rng(2).random((4, 60), np.float32))
    labels = jnp.asarray([0, 1, 2, 0])
    np.testing.assert_array_equal(viewed.losses(params, inputs, labels), plain.losses(params, inputs, labels))
    assert mean_loss(viewed, params, inputs, labels) != mean_loss(plain, params, inputs, labels)


def test_work_grows_with_views():
    once, thrice = (load_scenario("small", [*IMAGES, f"learning.views={count}"]).batch_bits() for count in (1, 3))
    assert thrice == 3 * once


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["learning.views=2"], "views 2 of 784 inputs need image_shape"),
        (["learning.views=2", "learning.image_shape=[5, 5, 1]"], "views 2 of 784 inputs need image_shape"),
    ],
)
def test_views_of_what_is_no_image_are_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        load_scenario("small", overrides)


def test_views_of_features_are_refused():
    with pytest.raises(ScenarioError, match="views 2 with features 'scattering'"):
        load_scenario("fair", ["learning.views=2"])
