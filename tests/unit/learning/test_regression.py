"""The model that predicts numbers: its gradients, its error on test data, and what it learns."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.data.sources import DataSet
from fairwave.errors import ScenarioError
from fairwave.learning.evaluate import accuracy, root_mean_squared_error
from fairwave.learning.loss import CHUNK
from fairwave.learning.models import model_of
from fairwave.learning.per_sample import scaled_sum
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.parameters import Scenario
from tests.builders import LIKE_THE_PAPER

NUMBERS = (
    "cell.num_devices=3",
    "data.target=number",
    "learning.model=regression",
    "learning.layer_sizes=[4, 1]",
    "learning.batch_size=16",
    "learning.learning_rate=0.05",
    "radio.payload_bits=unset",
    LIKE_THE_PAPER,
)
NOISE = 0.3
"""Std of what is not linear in the labels."""


def scenario(*overrides: str, preset: str = "small") -> Scenario:
    return fairwave.load_scenario(preset, [*NUMBERS, *overrides])


def linear_data() -> DataSet:
    """Labels far from 0 that are linear in the inputs, but for noise."""
    draw = np.random.default_rng(3)
    inputs = draw.normal(size=(900, 4)).astype(np.float32)
    labels = inputs @ np.array([2.0, -1.0, 0.5, 3.0]) + 5.0 + draw.normal(0.0, NOISE, 900)
    labels = labels.astype(np.float32)
    return DataSet(inputs[:600], labels[:600], inputs[600:], labels[600:])


def least_squares(data: DataSet) -> tuple[float, float]:
    """The least loss that any linear model has on training data, and its root mean squared error on test data."""
    train, test = (np.column_stack([x, np.ones(len(x))]).astype(float) for x in (data.train_inputs, data.test_inputs))
    fitted = np.linalg.lstsq(train, data.train_labels.astype(float), rcond=None)[0]
    loss = 0.5 * np.mean((train @ fitted - data.train_labels) ** 2)
    return float(loss), float(np.sqrt(np.mean((test @ fitted - data.test_labels) ** 2)))


def test_training_reaches_the_least_squares_fit():
    """No linear model has a lower loss than NumPy's fit, and the trained one comes close to it."""
    data, chosen = linear_data(), scenario()
    results = fairwave.simulate(chosen, ["no_privacy"], rounds=6, data=data).results
    least_loss, least_rmse = least_squares(data)
    loss = results["global_loss"].values.ravel()
    first = float(results["received_loss"].isel(round=0).mean())
    assert least_loss <= loss[-1] < 1.05 * least_loss < 0.01 * first
    assert results["test_rmse"].values.ravel()[-1] == pytest.approx(least_rmse, rel=0.02)
    assert results["test_rmse"].dims == ("scheme", "seed", "round")
    assert np.isnan(results["test_accuracy"]).all() and np.isnan(results["received_accuracy"]).all()
    assert results.sizes["class"] == 1 and results["samples"].sum() == 600
    assert 0.4 < results["membership_auc"].values.ravel()[-1] < 0.6


def test_private_training_learns():
    """Noise on devices and in their copies costs some of the fit, and the error stays far below that of no model."""
    data = linear_data()
    private = ("privacy.clip_norm=5", "privacy.noise_multiplier=1", "privacy.max_epsilon=50", "learning.features=none")
    chosen = scenario(
        *private, "data.samples_per_device=200", "defences.use=[]", "defences.validation_samples=100", preset="fair"
    )
    results = fairwave.simulate(chosen, ["proposed"], rounds=3, data=data).results
    rmse, untrained = results["test_rmse"].values, float(np.sqrt(np.mean(data.test_labels**2)))
    assert (rmse < untrained / 3).all() and (rmse > 0.9 * least_squares(data)[1]).all()
    assert (results["local_iterations"] > 0).all() and results.sizes["class"] == 1


def test_clipped_gradients_against_their_closed_form():
    """A record's gradient is its residual times its inputs and 1, shortened to the bound."""
    draw, bound, model = np.random.default_rng(0), 1.5, model_of(scenario().learning)
    inputs, labels = draw.normal(size=(40, 4)).astype(np.float32), draw.normal(0, 100, 40).astype(np.float32)
    params, counted = model.init(jax.random.key(1)), draw.random(40) < 0.8
    ours = scaled_sum(
        model,
        params,
        jnp.asarray(inputs),
        jnp.asarray(labels),
        jnp.asarray(counted),
        factor=functools.partial(clip_factor, bound=bound),
        bound=bound,
    )
    weight, bias = (np.asarray(params[0][name], float) for name in ("weight", "bias"))
    rows = (inputs @ weight + bias - labels[:, None]) * np.column_stack([inputs, np.ones(40)])
    rows *= np.minimum(1.0, bound * (1 - 1e-6) / np.linalg.norm(rows, axis=1, keepdims=True))
    expected = rows[counted].sum(axis=0)
    np.testing.assert_allclose(ours[0]["weight"][:, 0], expected[:4], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours[0]["bias"], expected[4:], rtol=1e-4, atol=1e-5)


def test_gradients_of_hidden_layers_are_those_of_each_sample_alone():
    draw, model = np.random.default_rng(1), model_of(scenario("learning.layer_sizes=[4, 6, 1]").learning)
    inputs, labels = draw.normal(size=(9, 4)).astype(np.float32), draw.normal(size=9).astype(np.float32)
    params = model.init(jax.random.key(2))
    ours = scaled_sum(
        model,
        params,
        jnp.asarray(inputs),
        jnp.asarray(labels),
        jnp.ones(9, bool),
        factor=functools.partial(clip_factor, bound=0.4),
        bound=0.4,
    )
    total = 0.0
    for one, label in zip(inputs, labels, strict=True):
        gradient = jax.grad(lambda p, x=one, y=label: 0.5 * (model.numbers(p, x[None])[0] - y) ** 2)(params)
        flat = np.asarray(ravel_pytree(gradient)[0], np.float64)
        total = total + flat * min(1.0, 0.4 * (1 - 1e-6) / np.linalg.norm(flat))
    np.testing.assert_allclose(ravel_pytree(ours)[0], total, rtol=2e-4, atol=1e-5)


def test_the_error_is_that_of_all_samples():
    """Over more than one chunk, the last of which is not full; bytes are scaled, labels are not."""
    draw, model = np.random.default_rng(2), model_of(scenario().learning)
    inputs = draw.integers(0, 256, (2 * CHUNK + 7, 4)).astype(np.uint8)
    labels = draw.normal(1e3, 50.0, len(inputs)).astype(np.float32)
    params = model.init(jax.random.key(0))
    weight, bias = (np.asarray(params[0][name], float) for name in ("weight", "bias"))
    predicted = (inputs / 255.0 @ weight + bias)[:, 0]
    given = root_mean_squared_error(model, params, jnp.asarray(inputs), jnp.asarray(labels))
    assert float(given) == pytest.approx(np.sqrt(np.mean((predicted - labels) ** 2)), rel=1e-5)
    assert np.isnan(accuracy(model, params, jnp.asarray(inputs), jnp.asarray(labels)))
    classes = model_of(fairwave.load_scenario("small").learning)
    assert np.isnan(root_mean_squared_error(classes, None, jnp.zeros((2, 784)), jnp.zeros(2)))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["learning.layer_sizes=[4, 2]"], r"predicts one number; let them end with 1"),
        (["learning.model=mlp"], r"data.target 'number' with learning.model 'mlp', which predicts classes"),
        (["data.target=class"], r"data.target 'class' with learning.model 'regression', which predicts numbers"),
        (['data.partition={law="dirichlet", alpha=1}'], r"data.partition 'dirichlet' shares samples out by class"),
        (['data.partition={law="shards", per_device=2}'], r"data.partition 'shards' shares samples out by class"),
        (['data.classes=["a", "b"]'], r"data.classes names 2 classes"),
        (["run.target_accuracy=0.9"], r"has no accuracy; use run.target_loss"),
        (["privacy.publish_class_counts=true"], r"'number' has no classes; leave it out"),
        (["data.target=figure"], r"data.target"),
    ],
)
def test_what_needs_classes_is_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        scenario(*overrides)


def test_schemes_and_behaviours_that_need_classes_are_refused():
    with pytest.raises(ScenarioError, match="'cffl' judges devices by accuracy"):
        fairwave.simulate(scenario(), ["cffl"], data=linear_data())
    flips = scenario('cheating.adversaries=[{behaviour="label_flip", devices=[0]}]')
    with pytest.raises(ScenarioError, match="'label_flip' swaps classes"):
        fairwave.simulate(flips, ["no_privacy"], data=linear_data())


def test_data_of_the_other_kind_are_refused():
    with pytest.raises(ScenarioError, match=r"'number', but the labels of 'mnist' are classes; set it to 'class'"):
        fairwave.simulate(scenario("learning.layer_sizes=[784, 1]"), ["no_privacy"])
    with pytest.raises(ScenarioError, match=r"'class', but the labels of the data set are numbers"):
        fairwave.simulate("small", ["no_privacy"], data=linear_data())
    with pytest.raises(ScenarioError, match="1 outputs for data of 4 features and a number to predict"):
        fairwave.simulate(scenario("learning.layer_sizes=[5, 1]"), ["no_privacy"], data=linear_data())
