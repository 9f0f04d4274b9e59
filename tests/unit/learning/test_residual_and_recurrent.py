"""The residual and the recurrent network, written out in NumPy; and what records of a batch do to each other."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.double_precision import double_precision
from fairwave.learning.models import model_of
from fairwave.learning.per_sample import scaled_sum
from fairwave.learning.residual import AT_ONCE, SMALLEST_IMAGE
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.learning_parameters import Learning

RESNET = ["learning.model=resnet", "learning.layer_sizes=[3072, 10]", "learning.image_shape=[32, 32, 3]"]
SMALL_RESNET = [
    *("learning.model=resnet", "learning.layer_sizes=[1088, 4]", "learning.image_shape=[17, 32, 2]"),
    "learning.channels=[4, 6]",
]
GRU = [
    *("learning.model=gru", "learning.layer_sizes=[60, 4]", "learning.image_shape=[20, 1, 3]"),
    "learning.channels=[5, 6]",
]


def learning(*overrides: str) -> Learning:
    return fairwave.load_scenario("paper", overrides).learning


def drawn(chosen: Learning, samples: int) -> tuple:
    """A model, parameters none of which is 0 or 1, the same in double precision, and inputs."""
    model = model_of(chosen)
    draw = np.random.default_rng(6)
    params = jax.tree.map(
        lambda leaf: leaf + 0.1 * draw.normal(size=leaf.shape).astype(np.float32), model.init(jax.random.key(2))
    )
    inputs = draw.normal(size=(samples, chosen.layer_sizes[0])).astype(np.float32)
    return model, params, jax.tree.map(lambda leaf: np.asarray(leaf, float), params), inputs


def normalised_in_numpy(layer: dict, image: np.ndarray, stride: int) -> np.ndarray:
    """A convolution with zeros around the image, then two or four groups of channels, each by itself."""
    side, channels = layer["weight"].shape[0], layer["weight"].shape[3]
    padded = np.pad(image, ((side // 2, side // 2), (side // 2, side // 2), (0, 0)))
    rows, columns = (-(-size // stride) for size in image.shape[:2])
    out = np.empty((rows, columns, channels))
    for row, column in np.ndindex(rows, columns):
        patch = padded[stride * row : stride * row + side, stride * column : stride * column + side]
        out[row, column] = np.tensordot(patch, layer["weight"], 3)
    groups = np.split(out, 4 if channels % 4 == 0 else 2, axis=-1)
    normal = np.concatenate([(group - group.mean()) / np.sqrt(group.var() + 1e-5) for group in groups], axis=-1)
    return normal * layer["scale"] + layer["shift"]


def test_the_residual_network_agrees_with_loops():
    """Sides that are odd and not alike, groups of one to three channels."""
    chosen = learning(*SMALL_RESNET, "learning.activation=tanh")
    model, params, exact, inputs = drawn(chosen, 1)
    hidden = np.tanh(normalised_in_numpy(exact["stem"], inputs[0].astype(float).reshape(17, 32, 2), 2))
    for stage, stride in (("narrow", 1), ("middle", 2), ("wide", 2)):
        beside = hidden if stride == 1 else normalised_in_numpy(exact[f"{stage}_shortcut"], hidden, 2)
        inner = np.tanh(normalised_in_numpy(exact[f"{stage}_first"], hidden, stride))
        hidden = np.tanh(normalised_in_numpy(exact[f"{stage}_second"], inner, 1) + beside)
    wanted = hidden.mean(axis=(0, 1)) @ exact["last"]["weight"] + exact["last"]["bias"]
    np.testing.assert_allclose(jax.jit(model.logits)(params, inputs)[0], wanted, rtol=1e-4, atol=1e-5)


def test_the_recurrent_network_agrees_with_loops():
    """Gates as defined: reset within the candidate, update between candidate and old state."""
    model, params, exact, inputs = drawn(learning(*GRU, "learning.activation=tanh"), 1)

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-value))

    state, states = np.zeros(6), []
    for sample in inputs[0].astype(float).reshape(20, 3):
        hidden = np.tanh(sample @ exact["first"]["weight"] + exact["first"]["bias"])
        drive = hidden @ exact["input"]["weight"] + exact["input"]["bias"]
        recall = state @ exact["state"]["weight"] + exact["state"]["bias"]
        reset, update = sigmoid(drive[:6] + recall[:6]), sigmoid(drive[6:12] + recall[6:12])
        state = (1.0 - update) * np.tanh(drive[12:] + reset * recall[12:]) + update * state
        states.append(state)
    wanted = np.mean(states, axis=0) @ exact["last"]["weight"] + exact["last"]["bias"]
    np.testing.assert_allclose(jax.jit(model.logits)(params, inputs)[0], wanted, rtol=1e-4, atol=1e-5)


def test_sizes():
    """Kernels, and two numbers per channel of each of the nine normalisations; counted by hand."""
    kernels = 9 * (3 * 16 + 2 * 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64) + 16 * 32 + 32 * 64
    normal = 2 * (3 * 16 + 3 * 32 + 3 * 64)
    assert learning(*RESNET, "learning.channels=[16, 32]").num_parameters() == kernels + normal + 650 == 78_042
    assert learning(*GRU).num_parameters() == 4 * 5 + 6 * 18 + 7 * 18 + 7 * 4


def test_many_images_are_scored_like_few():
    """More than are computed together, and no whole multiple of that: values and gradients."""
    model, params, _, inputs = drawn(learning(*SMALL_RESNET), AT_ONCE + 3)
    labels = jnp.zeros(inputs.shape[0], int)

    def loss(given, first, last):
        return model.losses(given, jnp.asarray(inputs[first:last]), labels[first:last]).sum()

    value_and_slope = jax.jit(jax.value_and_grad(loss), static_argnums=(1, 2))
    whole, slope = value_and_slope(params, 0, AT_ONCE + 3)
    parts = [value_and_slope(params, *ends) for ends in ((0, 40), (40, AT_ONCE + 3))]
    assert whole == pytest.approx(float(parts[0][0] + parts[1][0]), rel=1e-5)
    wanted = ravel_pytree(parts[0][1])[0] + ravel_pytree(parts[1][1])[0]
    np.testing.assert_allclose(ravel_pytree(slope)[0], wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("samples", [4, AT_ONCE + 3])
@pytest.mark.parametrize("overrides", [SMALL_RESNET, GRU])
def test_a_record_does_not_reach_the_others(overrides, samples):
    model, params, _, inputs = drawn(learning(*overrides), samples)
    changed = inputs.copy()
    changed[1] *= -50.0
    logits = jax.jit(model.logits)
    before, after = (np.asarray(logits(params, each)) for each in (inputs, changed))
    others = np.arange(samples) != 1
    np.testing.assert_allclose(after[others], before[others], rtol=0.0, atol=1e-6)
    assert np.abs(after[1] - before[1]).max() > 1e-2


@pytest.mark.parametrize("overrides", [SMALL_RESNET, GRU])
def test_a_private_step_adds_up_clipped_gradients(overrides):
    """Against one gradient after the other."""
    model, params, _, inputs = drawn(learning(*overrides), 5)
    labels, bound = np.arange(5) % 4, 0.5
    own_slope = jax.jit(jax.grad(lambda *given: model.losses(*given)[0]))
    total = 0.0
    for one, label in zip(inputs, labels, strict=True):
        slope = own_slope(params, one[None], jnp.array([label]))
        flat = np.asarray(ravel_pytree(slope)[0], float)
        assert np.linalg.norm(flat) > bound
        total = total + flat * bound / np.linalg.norm(flat)
    with double_precision():
        factor = functools.partial(clip_factor, bound=bound)
        given = (jnp.asarray(inputs), jnp.asarray(labels), jnp.ones(5, bool))
        add = jax.jit(functools.partial(scaled_sum, model, factor=factor, bound=bound))
        ours = ravel_pytree(add(params, *given))[0]
    np.testing.assert_allclose(ours, total, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([*RESNET[:2], "learning.image_shape=[32, 32, 1]"], "give height, width and colours"),
        (
            [RESNET[0], "learning.layer_sizes=[480, 4]", f"learning.image_shape=[{SMALLEST_IMAGE - 1}, 32, 1]"],
            r"\[15, 32, 1\] is too small for model 'resnet'; use 'cnn', or images of 16 x 16 pixels",
        ),
        ([*GRU[:2], "learning.image_shape=[20, 3, 1]"], r"\[20, 3, 1\] for model 'gru'; give samples in time"),
        ([GRU[0], "learning.layer_sizes=[6, 4]", "learning.image_shape=[1, 1, 6]"], "give samples in time"),
        (["learning.model=gru", "learning.layer_sizes=[60, 8, 4]", GRU[2]], "give two: inputs and classes"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(overrides, said):
    with pytest.raises(fairwave.errors.ScenarioError, match=said):
        learning(*overrides)
