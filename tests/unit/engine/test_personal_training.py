"""Training with a pull towards the copy, of a device's own model or of the copy itself.

Against a plain loop; what it costs, and what is refused.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.engine.device_side import HeldSamples, LocalTraining, SharedInputs, Trained, TrainingInputs, train_device
from fairwave.engine.round_record import ledger_events
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.learning.dense import Dense
from fairwave.learning.model import classifier
from fairwave.learning.optimizer import Optimizer
from fairwave.privacy.protection import Protection
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order, Track
from tests.builders import SOFTMAX_MNIST, clusters_cell, rounds_of

RATE, CLIP, COUNT = 0.3, 0.6, 6
SOFTMAX = Dense((4, 3))
MODEL = classifier(SOFTMAX.init, SOFTMAX.logits, taps=SOFTMAX.taps)
OWN, COPY = (SOFTMAX.init(jax.random.key(seed)) for seed in (1, 2))
SILENT = Protection(CLIP, 1e-12, None, 8, "simulation")
"""Every record is in every batch, and noise is negligible."""
INPUTS = np.random.default_rng(0).normal(size=(COUNT, 4)).astype(np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 1], np.int32)


def train(pull: float | None, iterations: int, copy=COPY, own=OWN, **changes) -> Trained:
    setting = LocalTraining(MODEL, 8, RATE, 1.0, Optimizer(), 0.0, protection=SILENT, personal_pull=pull)
    shared = SharedInputs(jax.random.key(0), jnp.asarray(0), jnp.asarray(INPUTS), jnp.asarray(LABELS))
    inputs = TrainingInputs(
        copy=copy,
        own_gradient=None,
        held=HeldSamples(jnp.arange(COUNT), jnp.asarray(COUNT)),
        trained_count=jnp.asarray(COUNT),
        flipped=jnp.asarray(False),
        iterations=jnp.asarray(iterations),
        index=jnp.asarray(0),
        personal_model=None if pull is None else own,
    )
    return train_device(dataclasses.replace(setting, **changes), shared, inputs)


def flat(tree) -> np.ndarray:
    return np.asarray(ravel_pytree(tree)[0], np.float64)


def mean_clipped(bias: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the records' clipped gradients of softmax regression, record by record."""
    of_bias, of_weight = np.zeros(3), np.zeros((4, 3))
    for record, label in zip(INPUTS.astype(np.float64), LABELS, strict=True):
        logits = record @ weight + bias
        error = np.exp(logits) / np.exp(logits).sum() - np.eye(3)[label]
        length = np.sqrt((error**2).sum() + (np.outer(record, error) ** 2).sum())
        factor = min(1.0, CLIP / length)
        of_bias += factor * error
        of_weight += factor * np.outer(record, error)
    return of_bias / COUNT, of_weight / COUNT


def by_hand(pull: float, iterations: int, start=OWN) -> np.ndarray:
    """The change of a model in a round; none without steps, as in an outage, which costs nothing."""
    begun = [np.asarray(start[0][name], np.float64) for name in ("bias", "weight")]
    copy = [np.asarray(COPY[0][name], np.float64) for name in ("bias", "weight")]
    model = begun
    for _ in range(iterations):
        slopes = mean_clipped(*model)
        model = [w - RATE * (g + pull * (w - c)) for w, g, c in zip(model, slopes, copy, strict=True)]
    return np.concatenate([(w - b).ravel() for w, b in zip(model, begun, strict=True)])


@pytest.mark.parametrize(("pull", "iterations"), [(0.0, 5), (0.4, 0), (0.4, 1), (0.4, 5), (2.0, 12)])
def test_a_round_is_that_of_a_plain_loop(pull, iterations):
    trained = train(pull, iterations)
    np.testing.assert_allclose(flat(trained.update), by_hand(pull, iterations), atol=2e-6)
    np.testing.assert_allclose(flat(trained.personal_model), flat(OWN) + flat(trained.update), atol=1e-6)
    own = train(None, 0, copy=trained.personal_model)  # the loss that counts is that of the device's own model
    assert float(trained.loss) == pytest.approx(float(own.loss), rel=1e-6)


@pytest.mark.parametrize(("pull", "iterations"), [(0.0, 5), (0.4, 0), (0.4, 1), (0.4, 5), (2.0, 12)])
def test_training_that_is_pulled_back_to_its_copy_is_that_of_a_plain_loop(pull, iterations):
    trained = train(None, iterations, copy_pull=pull)
    np.testing.assert_allclose(flat(trained.update), by_hand(pull, iterations, start=COPY), atol=2e-6)
    assert trained.personal_model is None
    plain = train(None, iterations, copy_pull=pull, protection=None)
    if iterations > 1 and pull > 0.0:
        away = [np.linalg.norm(flat(one.update)) for one in (plain, train(None, iterations, protection=None))]
        assert away[0] < 0.9 * away[1]


def test_the_noise_of_a_copy_is_in_the_change_of_an_own_model_alone():
    """With gradients clipped to nothing the pull is all that moves: not at all where training starts at the copy."""
    nothing = dataclasses.replace(SILENT, clip_norm=1e-12)
    noise = jax.tree.map(lambda leaf: 0.5 * jax.random.normal(jax.random.key(3), leaf.shape, leaf.dtype), COPY)
    noisy = jax.tree.map(jnp.add, COPY, noise)
    back = train(None, 5, copy=noisy, copy_pull=2.0, protection=nothing)
    assert np.abs(flat(back.update)).max() < 1e-6
    carried = flat(train(2.0, 5, copy=noisy, own=COPY, protection=nothing).update)
    np.testing.assert_allclose(carried, (1.0 - (1.0 - RATE * 2.0) ** 5) * flat(noise), rtol=1e-4)


@pytest.mark.parametrize(("scheme", "caught"), [("fedprox", False), ("mr_mtl", True)])
def test_the_watermark_is_found_in_changes_of_own_models_alone(scheme, caught):
    strong = ("peers.mr_mtl_weight=15", "peers.fedprox_weight=15", "privacy.local_noise=false")
    cell = clusters_cell(scheme, *strong, 'defences.use=["watermark"]', "learning.gradient_exchange=false")
    found = [np.asarray(record.findings["watermark"]).any() for _, record in rounds_of(cell, 5)]
    assert any(found) == caught


def test_without_a_pull_a_device_trains_alone():
    alone = train(None, 7, copy=OWN)
    for copy in (COPY, OWN):
        np.testing.assert_allclose(flat(train(0.0, 7, copy=copy).update), flat(alone.update), atol=1e-7)


def test_the_largest_pull_trains_from_the_copy_in_every_step():
    """With rate times pull at 1, whatever a model was before, each step starts at the copy."""
    before = train(1.0 / RATE, 4).personal_model
    bias, weight = (np.asarray(before[0][name], np.float64) for name in ("bias", "weight"))
    expected = flat(COPY) - RATE * np.concatenate([part.ravel() for part in mean_clipped(bias, weight)])
    np.testing.assert_allclose(flat(train(1.0 / RATE, 5).personal_model), expected, atol=2e-6)
    apart = [np.linalg.norm(flat(train(pull, 5).personal_model) - flat(COPY)) for pull in (0.0, 0.1, 0.5, 2.0)]
    assert apart == sorted(apart, reverse=True) and apart[-1] < 0.5 * apart[0]
    from_copy, one = train(None, 1, copy=COPY), train(1.0 / RATE, 1, own=COPY)
    np.testing.assert_allclose(flat(one.update), flat(from_copy.update), atol=1e-6)


def test_the_reported_noise_knows_of_the_pull():
    loud = dataclasses.replace(SILENT, noise_multiplier=1.7)
    a = 1.0 - RATE * 0.4
    expected = RATE * 1.7 * CLIP / COUNT * np.sqrt((1 - a**18) / (1 - a**2))
    assert float(train(0.4, 9, protection=loud).reported_noise_std) == pytest.approx(expected, rel=1e-5)
    assert float(train(None, 9, protection=loud, copy_pull=0.4).reported_noise_std) == pytest.approx(expected, rel=1e-5)
    assert float(train(0.0, 9, protection=loud).reported_noise_std) == pytest.approx(
        RATE * 1.7 * CLIP / COUNT * 3, rel=1e-5
    )


def test_the_access_points_model_is_the_mean_of_the_devices():
    """Where every change arrives whole; its devices' models differ."""
    cell = clusters_cell("mr_mtl", "privacy.local_noise=false", "peers.mr_mtl_weight=1")
    state, record = rounds_of(cell, 3)[-1]
    assert record.delivered.all()
    for shared, own in zip(
        *map(jax.tree.leaves, (state.server.global_params, state.devices.personal_models)), strict=True
    ):
        np.testing.assert_allclose(np.mean(own, axis=0), shared, atol=1e-5)
        assert np.ptp(np.asarray(own), axis=0).max() > 1e-3


PRIVATE = (*SOFTMAX_MNIST, "defences.use=[]", "privacy.max_epsilon=unset")


@pytest.mark.parametrize(
    "others", [("mr_mtl", "fedprox"), pytest.param(("fedadam", "fednova", "scaffold"), marks=pytest.mark.slow)]
)
def test_a_proof_costs_what_it_costs_with_other_schemes(others):
    """The same events in every round, number by number; all plan alike, so that their iterations are the same."""
    order = Order.checked(fairwave.load_scenario("fair-mlp", PRIVATE), ("max_power", *others), (0,), 2)
    experiment = Experiment(order)
    kept = []
    for scheme in order.schemes:
        cell = experiment.cell(Track(scheme, 0))
        done = list(run_rounds(cell, 2))
        kept.append([event for one in done for event in ledger_events(cell.access_point, one.record, one.round_index)])
    assert len(kept[0]) > 0 and any(event.steps.sum() > 10 for event in kept[0])
    for events in kept[1:]:
        for ours, theirs in zip(kept[0], events, strict=True):
            for field in dataclasses.fields(ours):
                if field.name != "noise_std" or ours.basis == "data":
                    np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name))


@pytest.mark.parametrize(
    ("scheme", "overrides", "said"),
    [
        ("ditto", (), "'ditto' trains a model beside without noise"),
        ("mr_mtl", ("learning.optimizer=adam",), "the noise that learning.optimizer 'adam' then leaves"),
        ("mr_mtl", ("peers.mr_mtl_weight=2.1",), "would go beyond the copy; take a pull of at most 2 "),
        ("mr_mtl", ('defences.use=["validation", "watermark"]',), "'watermark' in defences.use takes for an echo"),
        ("fedprox", ("learning.optimizer=adam",), "the noise that learning.optimizer 'adam' then leaves"),
        ("fedprox", ("peers.fedprox_weight=2.1",), "would go beyond the copy; take a pull of at most 2 "),
        ("mr_mtl", ("privacy.mode=device",), "does more than take the mean of updates"),
    ],
)
def test_what_does_not_fit_is_refused(scheme, overrides, said):
    with pytest.raises(ScenarioError, match=said):
        Order.checked(fairwave.load_scenario("fair-mlp", [*PRIVATE, *overrides]), (scheme,), (0,), 1)


@pytest.mark.parametrize("name", ["ditto", "mr_mtl"])
def test_one_pull_is_enough(name):
    with pytest.raises(ArgumentError, match=f"scheme '{name}': personal_models has a pull of its own"):
        dataclasses.replace(SCHEMES[name], copy_pull=lambda peers: 1.0)


@pytest.mark.parametrize(
    ("scheme", "overrides"),
    [
        ("mr_mtl", ("learning.optimizer=momentum",)),
        ("mr_mtl", ("peers.mr_mtl_weight=2",)),
        ("fedprox", ("learning.optimizer=momentum", 'defences.use=["validation", "watermark"]')),
        ("fedprox", ("privacy.mode=device",)),
    ],
)
def test_what_fits_is_taken(scheme, overrides):
    Order.checked(fairwave.load_scenario("fair-mlp", [*PRIVATE, *overrides]), (scheme,), (0,), 1)
