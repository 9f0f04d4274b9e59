"""FedDyn: rounds against NumPy, what its weight does, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.errors import ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.learning.model import flat_rows
from fairwave.runs.order import Order
from fairwave.scenario.peers import Peers
from tests.builders import SOFTMAX_MNIST, clusters_cell, rounds_of
from tests.oracles import softmax_rounds
from tests.unit.engine.softmax_devices import (
    FIRST,
    RATE,
    as_model,
    averaged,
    flat,
    played_by,
    slope_left,
    slopes,
    trained,
)

FEDDYN, ALPHA = SCHEMES["feddyn"], 0.4
ALONE = ("learning.gradient_exchange=false", "privacy.local_noise=false")


def played(rounds: list[dict[int, int]], alpha: float = ALPHA):
    """Model, the access point's state and the devices' terms after rounds of the engine's functions."""
    return played_by(FEDDYN, rounds, Peers(feddyn_weight=alpha), copy_pull=alpha)


def test_three_rounds_of_some_devices_are_those_of_the_paper():
    rounds = [{0: 2, 1: 9, 2: 5}, {0: 4, 2: 6}, {1: 3, 2: 3}]
    model, state, own = played(rounds)
    expected = flat(FIRST)
    carried = (np.zeros_like(expected), [np.zeros_like(expected)] * 3)
    for steps in rounds:
        expected, carried = softmax_rounds.feddyn(expected, carried, slopes(), steps, RATE, ALPHA)
    np.testing.assert_allclose(model, expected, atol=3e-6)
    np.testing.assert_allclose(state, carried[0], atol=2e-6)
    np.testing.assert_allclose(own, carried[1], atol=2e-6)
    np.testing.assert_allclose(state, np.mean(own, axis=0), atol=2e-6)  # h is the mean of the terms


def test_it_finds_the_optimum_of_all_where_plain_averaging_stays_beside_it():
    found, _, own = played([dict.fromkeys(range(3), 30)] * 60)
    assert slope_left(found) < 0.2 * slope_left(averaged(60, 30))
    for device, slope in enumerate(slopes()):  # a device's term has become the gradient of its loss there
        np.testing.assert_allclose(own[device], slope(found), atol=0.02)


def test_without_a_weight_devices_train_as_in_plain_averaging():
    _, _, own = played([{0: 5, 1: 5, 2: 5}] * 2, alpha=1e-7)
    carried = {"own": {"drift": as_model(own[1])}, "told": as_model(np.zeros_like(own[1])), "drift": FEDDYN.drift}
    ours, plain = trained(1, 7, flat(FIRST), copy_pull=1e-7, **carried), trained(1, 7, flat(FIRST))
    np.testing.assert_allclose(flat(ours.update), flat(plain.update), atol=1e-6)


def test_in_the_first_round_of_all_devices_the_mean_counts_twice():
    ours, plain = (
        rounds_of(clusters_cell(name, *ALONE, "peers.feddyn_weight=1e-6"), 1) for name in ("feddyn", "max_power")
    )
    start = np.asarray(ravel_pytree(clusters_cell("feddyn").start().server.global_params)[0])
    moved = [np.asarray(ravel_pytree(done[0][0].server.global_params)[0]) - start for done in (ours, plain)]
    np.testing.assert_allclose(moved[0], 2.0 * moved[1], atol=1e-5)


@pytest.mark.parametrize("more", [("cell.participants=2",), ("cell.straggler_probability=0.5",)])
def test_in_the_engine_the_state_stays_the_mean_of_the_terms(more):
    for state, _ in rounds_of(clusters_cell("feddyn", *more), 4):
        own = np.asarray(flat_rows(state.devices.drift)[0], np.float64)
        np.testing.assert_allclose(np.asarray(state.server.scheme_memory), own.mean(axis=0), atol=1e-6)
    assert np.ptp(own, axis=0).max() > 1e-4


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("learning.optimizer=adam",), "the noise that learning.optimizer 'adam' then leaves"),
        (("peers.feddyn_weight=2.1",), "would go beyond the copy; take a pull of at most 2 "),
        (("learning.late_rounds=2", "cell.straggler_probability=0.5"), "what arrived of them in the last round"),
        (("privacy.mode=device",), "does more than take the mean of updates"),
    ],
)
def test_what_does_not_fit_is_refused(overrides, said):
    settings = (*SOFTMAX_MNIST, "defences.use=[]", "privacy.max_epsilon=unset")
    Order.checked(fairwave.load_scenario("fair-mlp", settings), ("feddyn",), (0,), 1)
    with pytest.raises(ScenarioError, match=said):
        Order.checked(fairwave.load_scenario("fair-mlp", [*settings, *overrides]), ("feddyn",), (0,), 1)
