"""The models that scenarios name, and models from elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.learning.model import Model
from fairwave.learning.models import model_of
from fairwave.scenario.learning_parameters import Learning
from tests.builders import SMALL_MNIST

EXAMPLES = Path(__file__).parents[3] / "examples"

CNN = ["learning.model=cnn", "learning.layer_sizes=[784, 10]", "learning.image_shape=[28, 28, 1]"]
SOFTMAX = ["learning.model=softmax", "learning.layer_sizes=[784, 10]", "learning.l2=0.01"]


def learning(*overrides: str) -> Learning:
    return fairwave.load_scenario("paper", overrides).learning


@pytest.mark.parametrize(
    "overrides",
    [[], CNN, SOFTMAX, [*CNN[:2], "learning.image_shape=[14, 56, 1]"], [*CNN, "learning.channels=[3, 5]"]],
)
def test_the_scenario_counts_the_models_parameters(overrides):
    """Payloads follow from this number, without building the model."""
    chosen = learning(*overrides)
    shapes = jax.eval_shape(model_of(chosen).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == chosen.num_parameters()


def test_the_papers_network_has_the_papers_size():
    assert learning().num_parameters() == 109_386


def test_penalty_is_half_the_squared_length():
    model = model_of(learning(*SOFTMAX))
    params = model.init(jax.random.key(0))
    length = sum(float(np.sum(np.asarray(leaf, float) ** 2)) for leaf in jax.tree.leaves(params))
    assert float(model.penalty(params)) == pytest.approx(0.005 * length, rel=1e-5)


def test_convolution_agrees_with_loops():
    """A NumPy convolution written out, padding as 'SAME' with stride 2 asks for."""
    model = model_of(learning(*CNN))
    params = model.init(jax.random.key(3))
    image = np.random.default_rng(0).random((1, 28, 28))
    hidden = image[0][:, :, None]
    for name in ("first", "second"):
        weight, bias = (np.asarray(params[name][part], float) for part in ("weight", "bias"))
        size = hidden.shape[0] // 2
        padded = np.pad(hidden, ((0, 1), (0, 1), (0, 0)))  # an even size with stride 2 is padded at the end only
        out = np.empty((size, size, weight.shape[3]))
        for row in range(size):
            for column in range(size):
                patch = padded[2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
                out[row, column] = np.tensordot(patch, weight, 3) + bias
        hidden = np.maximum(out, 0.0)
    expected = hidden.ravel() @ np.asarray(params["last"]["weight"], float) + np.asarray(params["last"]["bias"], float)
    np.testing.assert_allclose(model.logits(params, jnp.asarray(image, jnp.float32))[0], expected, atol=1e-5)


def example(name: str) -> Model:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    model: Model = getattr(module, name)()
    return model


@pytest.mark.slow
@pytest.mark.parametrize("which", ["softmax", "cnn", "equinox_model", "flax_model"])
def test_every_kind_of_model_learns(which):
    overrides = {"softmax": SOFTMAX, "cnn": CNN}.get(which, [])
    model = None if overrides else example(which)
    scenario = fairwave.load_scenario("small", [*SMALL_MNIST, *overrides, "learning.learning_rate=0.05"])
    results = fairwave.simulate(scenario, ["no_privacy"], rounds=3, model=model).results
    loss = results["loss"].mean("device").values.ravel()
    assert loss[-1] < 0.8 * float(results["received_loss"].isel(round=0).mean())
    assert results["test_accuracy"].values.ravel()[-1] > 0.4


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["learning.model=softmax"], "give two: inputs and classes"),
        (["learning.model=cnn", "learning.layer_sizes=[784, 10]"], "give height, width and colours"),
        ([*CNN[:2], "learning.image_shape=[28, 28, 3]"], "give height, width and colours"),
        (["cell.participants=11"], "exceeds num_devices"),
        (["cell.straggler_probability=1.5"], "straggler_probability"),
    ],
)
def test_impossible_models_are_refused(overrides, said):
    with pytest.raises(fairwave.errors.ScenarioError, match=said):
        fairwave.load_scenario("paper", overrides)


POOLED = ["learning.model=pooled_cnn", *CNN[1:], "learning.channels=[16, 32]"]


def test_the_pooled_network_has_the_size_of_the_published_ones():
    """26,010 parameters, as Opacus' MNIST example counts them."""
    assert learning(*POOLED).num_parameters() == 26_010


def test_pooled_convolutions_agree_with_loops():
    """The network written out in NumPy: padding, strides, pooling, tanh and dense layers."""
    model = model_of(learning(*POOLED, "learning.activation=tanh"))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), model.init(jax.random.key(3)))
    image = np.random.default_rng(0).random((28, 28))
    hidden = np.pad(image, 3)[:, :, None]
    for name, side in (("first", 8), ("second", 4)):
        size = (hidden.shape[0] - side) // 2 + 1
        filtered = np.empty((size, size, params[name]["bias"].size))
        for row in range(size):
            for column in range(size):
                patch = hidden[2 * row : 2 * row + side, 2 * column : 2 * column + side]
                filtered[row, column] = np.tensordot(patch, params[name]["weight"], 3) + params[name]["bias"]
        active = np.tanh(filtered)
        neighbours = [active[y : y + size - 1, x : x + size - 1] for y in (0, 1) for x in (0, 1)]
        hidden = np.max(neighbours, axis=0)
    dense = np.tanh(hidden.reshape(-1) @ params["hidden"]["weight"] + params["hidden"]["bias"])
    wanted = dense @ params["last"]["weight"] + params["last"]["bias"]
    given = model.logits(model.init(jax.random.key(3)), jnp.asarray(image.reshape(1, -1), jnp.float32))
    np.testing.assert_allclose(np.asarray(given)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "gelu"])
def test_hidden_layers_apply_the_activation_that_is_asked_for(activation):
    """Against each function's definition, in a network of one hidden unit."""
    chosen = learning("learning.layer_sizes=[1, 1, 2]", f"learning.activation={activation}")
    params = [
        {"weight": jnp.ones((1, 1)), "bias": jnp.zeros(1)},
        {"weight": jnp.ones((1, 2)), "bias": jnp.zeros(2)},
    ]
    points = np.array([-2.0, -0.3, 0.0, 0.7, 3.0])
    defined = {
        "relu": np.maximum(points, 0.0),
        "tanh": np.tanh(points),
        "elu": np.where(points > 0.0, points, np.expm1(points)),
        "gelu": 0.5 * points * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (points + 0.044715 * points**3))),
    }
    given = model_of(chosen).logits(params, jnp.asarray(points[:, None], jnp.float32))
    np.testing.assert_allclose(np.asarray(given)[:, 0], defined[activation], atol=1e-6)


def test_images_too_small_to_pool_are_refused():
    with pytest.raises(fairwave.errors.ScenarioError, match="too small for model 'pooled_cnn'"):
        learning("learning.model=pooled_cnn", "learning.layer_sizes=[64, 10]", "learning.image_shape=[8, 8, 1]")


SERIES = ["learning.model=series_cnn", "learning.layer_sizes=[84, 3]", "learning.image_shape=[28, 1, 3]"]


def test_convolutions_along_time_agree_with_loops():
    model = model_of(learning(*SERIES, "learning.channels=[4, 5]", "learning.activation=tanh"))
    drawn = model.init(jax.random.key(5))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), drawn)
    hidden = np.random.default_rng(0).normal(size=(28, 3))
    given = model.logits(drawn, jnp.asarray(hidden.reshape(1, -1), jnp.float32))
    for name, width, step in (("first", 8, 4), ("second", 4, 2)):
        places = range(0, hidden.shape[0] - width + 1, step)
        windows = [hidden[start : start + width].ravel() for start in places]
        hidden = np.tanh(np.array(windows) @ params[name]["weight"] + params[name]["bias"])
    wanted = hidden.mean(axis=0) @ params["last"]["weight"] + params["last"]["bias"]
    np.testing.assert_allclose(np.asarray(given)[0], wanted, rtol=1e-4, atol=1e-5)


def test_series_that_are_too_short_are_refused():
    with pytest.raises(fairwave.errors.ScenarioError, match="samples in time"):
        learning("learning.model=series_cnn", "learning.layer_sizes=[48, 3]", "learning.image_shape=[16, 1, 3]")
