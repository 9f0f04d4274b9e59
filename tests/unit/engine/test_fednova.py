"""FedNova: what devices send for their number of steps, against rounds in NumPy and against plain averaging."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.engine.device_side import effective_steps
from fairwave.errors import ScenarioError
from fairwave.learning.optimizer import Optimizer
from fairwave.runs.order import Order
from tests.builders import SOFTMAX_MNIST, clusters_cell, clusters_scenario, leaves, rounds_of
from tests.oracles import softmax_rounds
from tests.unit.engine.softmax_devices import FIRST, RATE, SETTING, flat, slopes, trained

ALONE = ("learning.gradient_exchange=false", "privacy.local_noise=false")
STEPS = [2, 9, 5]


def test_two_rounds_are_those_of_the_paper():
    model, expected = flat(FIRST), flat(FIRST)
    for number in range(2):
        sent = [
            flat(trained(device, steps, model, round_index=number, effective_steps=6.5).update)
            for device, steps in enumerate(STEPS)
        ]
        model = model + np.mean(sent, axis=0)
        expected = softmax_rounds.fednova(expected, slopes(), STEPS, RATE, 6.5)
        np.testing.assert_allclose(model, expected, atol=2e-6)
    plain = flat(FIRST) + np.mean([flat(trained(d, s, flat(FIRST)).update) for d, s in enumerate(STEPS)], axis=0)
    once = softmax_rounds.fednova(flat(FIRST), slopes(), STEPS, RATE, float(np.mean(STEPS)))
    assert np.linalg.norm(once - plain) > 0.05 * np.linalg.norm(plain - flat(FIRST))


@pytest.mark.parametrize("optimizer", [Optimizer(), Optimizer("momentum", 0.7)])
def test_the_weight_of_gradients_is_how_far_constant_ones_move_a_model(optimizer):
    state, moved = optimizer.start(jnp.zeros(())), 0.0
    for steps in range(1, 12):
        direction, state = optimizer.direction(jnp.ones(()), state)
        moved += float(direction)
        assert float(optimizer.gradient_weight(jnp.asarray(float(steps)))) == pytest.approx(moved, rel=1e-5)


def test_an_update_and_its_reported_noise_are_scaled_alike():
    loud = dataclasses.replace(SETTING.protection, noise_multiplier=1.5)
    for optimizer, factor in ((Optimizer(), 2.0), (Optimizer("momentum", 0.5), (12 - 1 + 2**-12) / (6 - 1 + 2**-6))):
        plain = trained(0, 6, flat(FIRST), optimizer=optimizer, protection=loud)
        scaled = trained(0, 6, flat(FIRST), optimizer=optimizer, protection=loud, effective_steps=12.0)
        np.testing.assert_allclose(flat(scaled.update), factor * flat(plain.update), rtol=1e-5, atol=1e-7)
        assert float(scaled.reported_noise_std) == pytest.approx(factor * float(plain.reported_noise_std))
        assert float(scaled.update_norm) == pytest.approx(factor * float(plain.update_norm), rel=1e-5)


def test_a_device_without_steps_sends_nothing():
    assert not flat(trained(1, 0, flat(FIRST), effective_steps=7.0).update).any()


@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
def test_with_equal_steps_it_is_plain_averaging(optimizer):
    equal = (*ALONE, "compute.min_iterations=12", "compute.max_iterations=12", f"learning.optimizer={optimizer}")
    plain = rounds_of(clusters_cell("max_power", *equal), 2)
    same = rounds_of(clusters_cell("fednova", *equal, "peers.effective_steps=12"), 2)
    for ours, theirs in zip(*(leaves(done[-1][0].server.global_params) for done in (same, plain)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_effective_number_is_what_the_scenario_asks_of_devices():
    assert effective_steps(clusters_scenario("utility.required_iterations=[10, 20, 60]", devices=3)) == 30.0
    assert effective_steps(clusters_scenario("peers.effective_steps=17.5")) == 17.5


def test_steps_of_adam_are_refused():
    scenario = fairwave.load_scenario("small", [*SOFTMAX_MNIST, "learning.optimizer=adam"])
    with pytest.raises(ScenarioError, match="'adam' are no sum of gradients; take 'sgd' or 'momentum'"):
        Order.checked(scenario, ("fednova",), (0,), 1)
    with pytest.raises(ValueError, match="no weighted sum"):
        Optimizer("adam").gradient_weight(jnp.ones(()))


@pytest.mark.parametrize("mode", ["provable", "device"])
def test_privacy_modes_take_it(mode):
    settings = (*SOFTMAX_MNIST, "defences.use=[]", "privacy.max_epsilon=unset", f"privacy.mode={mode}")
    Order.checked(fairwave.load_scenario("fair-mlp", settings), ("fednova",), (0,), 1)
