"""SCAFFOLD: rounds against NumPy and against plain averaging, what is carried, and what does not fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.federate.agreement import Agreement
from fairwave.federate.settings import Settings
from fairwave.learning.model import flat_rows
from fairwave.learning.optimizer import Optimizer
from fairwave.runs.order import Order
from fairwave.runs.packing import pack_state, unpack_state
from tests.builders import SOFTMAX_MNIST, clusters_cell, rounds_of
from tests.oracles import softmax_rounds
from tests.unit.engine.softmax_devices import FIRST, RATE, averaged, flat, played_by, slope_left, slopes

SCAFFOLD = SCHEMES["scaffold"]
ALONE = ("learning.gradient_exchange=false", "privacy.local_noise=false")
EQUAL = (*ALONE, "compute.min_iterations=12", "compute.max_iterations=12", "peers.effective_steps=12")


def played(rounds: list[dict[int, int]], effective: float, **changes):
    """Model, mean control and own controls after rounds of the engine's functions."""
    return played_by(SCAFFOLD, rounds, effective_steps=effective, **changes)


def test_three_rounds_of_some_devices_are_those_of_the_paper():
    rounds = [dict.fromkeys(chosen, 6) for chosen in ([0, 1, 2], [0, 2], [1, 2])]
    model, (mean, _), own = played(rounds, 6.0)
    expected = flat(FIRST)
    controls = (np.zeros_like(expected), [np.zeros_like(expected)] * 3)
    for chosen in rounds:
        expected, controls = softmax_rounds.scaffold(expected, controls, slopes(), list(chosen), 6, RATE)
    np.testing.assert_allclose(model, expected, atol=3e-6)
    np.testing.assert_allclose(mean, controls[0], atol=3e-6)
    np.testing.assert_allclose(own, controls[1], atol=3e-6)
    assert np.abs(mean).max() > 0.01


@pytest.mark.parametrize("changes", [{}, {"optimizer": Optimizer("momentum", 0.6)}, {"rate_decay": 0.5}])
def test_the_mean_is_that_of_the_devices_and_own_variates_are_gradients(changes):
    """With steps of any number, momentum, or a rate that decays; a gradient where a device made one step."""
    first = flat(FIRST)
    _, (mean, _), own = played([{0: 1, 1: 4, 2: 9}], 5.0, **changes)
    np.testing.assert_allclose(mean, np.mean(own, axis=0), atol=1e-6)
    np.testing.assert_allclose(own[0], slopes()[0](first), atol=2e-6)
    _, (mean, _), own = played([{0: 3, 1: 4, 2: 9}, {0: 3, 1: 4}, {1: 4, 2: 9}], 5.0, **changes)
    np.testing.assert_allclose(mean, np.mean(own, axis=0), atol=2e-6)


def test_it_finds_the_optimum_of_all_where_plain_averaging_stays_beside_it():
    """The norm of the mean gradient after many rounds of many steps on data that differ."""
    found, _, _ = played([dict.fromkeys(range(3), 10)] * 60, 10.0)
    assert slope_left(found) < 0.2 * slope_left(averaged(60, 10))


def test_the_first_round_is_plain_averaging_and_the_second_is_not():
    ours, plain = (rounds_of(clusters_cell(name, *EQUAL), 2) for name in ("scaffold", "fedavg"))
    apart = [
        np.abs(ravel_pytree(a.server.global_params)[0] - ravel_pytree(b.server.global_params)[0]).max()
        for (a, _), (b, _) in zip(ours, plain, strict=True)
    ]
    assert apart[0] < 1e-6 and apart[1] > 1e-4


@pytest.mark.parametrize("more", [(), ("cell.participants=2",), ("cell.straggler_probability=0.5",)])
def test_in_the_engine_the_mean_stays_that_of_the_devices(more):
    """Devices whose update does not arrive in time keep their control variates, as the access point keeps its own."""
    done = rounds_of(clusters_cell("scaffold", *ALONE, *more), 4)
    for state, record in done:
        own = np.asarray(flat_rows(state.devices.drift)[0], np.float64)
        mean = np.asarray(state.server.scheme_memory[0], np.float64)
        np.testing.assert_allclose(mean, own.mean(axis=0), atol=2e-5)
        assert (np.abs(own).max(axis=1) > 0)[np.asarray(record.delivered)].all()
    assert np.ptp(np.asarray(own), axis=0).max() > 1e-3


def test_a_checkpoint_goes_on_where_it_was():
    cell = clusters_cell("scaffold", "cell.participants=3")
    whole = rounds_of(cell, 4)
    restored = unpack_state(pack_state(whole[1][0]), like=cell.start())
    assert pack_state(rounds_of(cell, 4, restored, 2)[-1][0]) == pack_state(whole[-1][0])


def test_an_upload_is_as_long_as_any():
    plans = [rounds_of(clusters_cell(name), 1)[0][1].plan for name in ("scaffold", "fedavg")]
    np.testing.assert_array_equal(plans[0].transmit_energy_j, plans[1].transmit_energy_j)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("learning.optimizer=adam",), "no sum of gradients"),
        (("learning.late_rounds=2", "cell.straggler_probability=0.5"), "what arrived of them in the last round"),
        (("privacy.mode=device",), "does more than take the mean of updates"),
    ],
)
def test_what_does_not_fit_is_refused(overrides, said):
    settings = (*SOFTMAX_MNIST, "defences.use=[]", "privacy.max_epsilon=unset")
    Order.checked(fairwave.load_scenario("fair-mlp", settings), ("scaffold",), (0,), 1)
    with pytest.raises(ScenarioError, match=said):
        Order.checked(fairwave.load_scenario("fair-mlp", [*settings, *overrides]), ("scaffold",), (0,), 1)


def test_a_federation_refuses_it():
    order = Order.checked(fairwave.load_scenario("small", SOFTMAX_MNIST), ("fednova", "scaffold"), (0,), 1)
    with pytest.raises(ScenarioError, match="'scaffold' corrects devices by vectors that messages of a federation"):
        Agreement(order, Settings())


@pytest.mark.parametrize(
    "change", [{"exchanges_gradients": True}, {"personal_models": SCHEMES["ditto"].personal_models}]
)
def test_gradients_are_corrected_in_one_way(change):
    with pytest.raises(ArgumentError, match="drift corrects the training of plain copies"):
        dataclasses.replace(SCAFFOLD, **change)
