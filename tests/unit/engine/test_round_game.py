"""The game of a round against a plain NumPy network, and what looking on must not change."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.round import RoundAtServer
from fairwave.engine.round_game import AT_A_TIME, RoundGame, received_updates
from fairwave.extensions import SCHEMES
from fairwave.learning.models import model_of
from fairwave.metrics.shapley import all_coalitions
from tests.builders import clusters, clusters_scenario

DEVICES = 3


@pytest.fixture(scope="module")
def data() -> DataSet:
    return clusters()


def looked_at(data: DataSet, *overrides: str) -> tuple[SimulatedCell, list[RoundAtServer]]:
    """A cell after two rounds, and what its witness saw."""
    scenario = clusters_scenario(*overrides, devices=DEVICES)
    cell, seen = SimulatedCell(scenario, SCHEMES["fedavg"], model_of(scenario.learning), data), []
    cell.witness = seen.append
    state = cell.start()
    for number in range(2):
        state, _ = cell.round(state, number)
    return cell, seen


def by_hand(params: list[dict[str, np.ndarray]], inputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross entropy and accuracy of dense layers."""
    values = inputs.astype(np.float64) / 255
    for place, layer in enumerate(params):
        values = values @ np.asarray(layer["weight"], np.float64) + np.asarray(layer["bias"], np.float64)
        values = np.maximum(values, 0.0) if place + 1 < len(params) else values
    largest = values.max(axis=1)
    normaliser = largest + np.log(np.exp(values - largest[:, None]).sum(axis=1))
    chosen = values[np.arange(labels.size), labels]
    return float((normaliser - chosen).mean()), float((values.argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("measure", ["loss", "accuracy"])
def test_the_worth_of_every_coalition_is_that_of_a_plain_network(data: DataSet, measure: str):
    cell, seen = looked_at(data)
    last = seen[0]  # later the model has nothing left to learn here
    updates = received_updates(cell.access_point, last, (data.test_inputs[:40], data.test_labels[:40]))
    held_out = (data.test_inputs[40:], data.test_labels[40:])
    params = last.server.global_params
    worth = RoundGame(cell.access_point.model, params, updates, held_out, measure)(all_coalitions(DEVICES))
    flat, unravel = ravel_pytree(params)
    rows = np.asarray(updates.rows, np.float64)
    for members, found in zip(all_coalitions(DEVICES), worth, strict=True):
        step = rows[members].mean(axis=0) if members.any() else np.zeros(flat.size)
        before, after = by_hand(params, *held_out), by_hand(unravel(flat + step), *held_out)
        wanted = before[0] - after[0] if measure == "loss" else after[1] - before[1]
        assert found == pytest.approx(wanted, abs=2e-6)
    assert worth[0] == 0.0 and np.ptp(worth) > 0.0


def test_the_grand_coalition_is_the_round(data: DataSet):
    cell, seen = looked_at(data)
    updates = received_updates(cell.access_point, seen[0], (data.test_inputs[:40], data.test_labels[:40]))
    step = ravel_pytree(seen[1].server.global_params)[0] - ravel_pytree(seen[0].server.global_params)[0]
    np.testing.assert_allclose(np.asarray(updates.rows).mean(axis=0), step, atol=1e-6)
    assert np.isfinite(updates.accuracy).all() and np.isfinite(updates.gain).all()


def test_a_device_that_sends_nothing_is_worth_nothing(data: DataSet):
    cell, seen = looked_at(data, "cell.participants=2")
    updates = received_updates(cell.access_point, seen[0], (data.test_inputs[:40], data.test_labels[:40]))
    (absent,) = np.flatnonzero(~np.asarray(updates.arrived))
    game = RoundGame(cell.access_point.model, seen[0].server.global_params, updates, cell.access_point.test)
    coalitions = all_coalitions(DEVICES)
    with_it = coalitions[:, absent]
    np.testing.assert_array_equal(game(coalitions[with_it]), game(coalitions[~with_it]))


def test_many_coalitions_come_in_parts(data: DataSet):
    cell, seen = looked_at(data)
    updates = received_updates(cell.access_point, seen[0], cell.access_point.test)
    game = RoundGame(cell.access_point.model, seen[0].server.global_params, updates, cell.access_point.test)
    many = np.tile(all_coalitions(DEVICES), (AT_A_TIME // 8 + 1, 1))
    np.testing.assert_array_equal(
        game(many).reshape(-1, 8), np.tile(game(all_coalitions(DEVICES)), (len(many) // 8, 1))
    )


def test_looking_on_changes_nothing(data: DataSet):
    cell, _ = looked_at(data)
    states = []
    for witness in (None, lambda seen: None):
        cell.witness, state = witness, cell.start()
        for number in range(2):
            state, _ = cell.round(state, number)
        states.append(state)
    for one, other in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(one, other)
