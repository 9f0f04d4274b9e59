"""The backdoor: what its attackers train on, what they send, and how often it works, beside plain NumPy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.errors import ScenarioError
from fairwave.extensions import BEHAVIOURS, SCHEMES
from fairwave.learning.model import flat_rows
from fairwave.learning.models import model_of
from fairwave.report.cheating_section import cheating_section
from fairwave.report.run_table import run_table
from fairwave.report.tables import pieces_html
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary
from tests.builders import clusters, clusters_cell, clusters_scenario, rounds_of

TRIGGER = BEHAVIOURS["backdoor"].trigger
ATTACKER = 3


def dark() -> DataSet:
    """Clusters whose last input, where the mark goes, is dark: like the margin of an image."""
    data = clusters()
    for inputs in (data.train_inputs, data.test_inputs):
        inputs[:, -1] = 0
    return data


def played(*overrides: str, first_round: int = 1) -> SimulatedCell:
    entry = Adversary(behaviour="backdoor", devices=(ATTACKER,), first_round=first_round)
    scenario = clusters_scenario(*overrides, cheats=(entry,))
    return SimulatedCell(scenario, SCHEMES["no_privacy"], model_of(scenario.learning), dark())


@pytest.mark.parametrize(("shape", "marked"), [((28, 28), 31), ((784,), 31), ((30,), 1), ((3,), 1), ((8, 8, 3), 7)])
@pytest.mark.parametrize(("kind", "brightest"), [(np.uint8, 255), (np.float32, 1.0)])
def test_a_mark_is_the_last_values_of_a_sample(shape, marked, kind, brightest):
    inputs = np.random.default_rng(0).integers(0, 200, (5, *shape)).astype(kind) / kind(2)
    inputs = inputs.astype(kind)
    found = np.asarray(TRIGGER.mark(jnp.asarray(inputs)))
    expected = inputs.reshape(5, -1).copy()
    expected[:, -marked:] = brightest
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected.reshape(inputs.shape))


def gathered(run: SimulatedCell, number: int):
    state, round_index = run.start(), jnp.asarray(number)
    invitation = run.access_point.invite(state.server, round_index)
    plans = run.devices.plan(state.devices, invitation, run.devices.draw_channels(round_index), None)
    return run.devices.gather(state.devices, state.server, invitation, plans, round_index)


@pytest.mark.parametrize("refreshed", [0, 7])
def test_half_of_the_attackers_samples_are_marked_and_nobody_elses(refreshed):
    overrides = ("data.samples_per_device=40", f"data.refreshed_samples={refreshed}")
    run, data, number = played(*overrides, first_round=2), dark(), 3
    before, then = gathered(run, 0), gathered(run, number)
    honest = np.asarray(run.honest_devices.held(jnp.asarray(number)))
    held = np.asarray(then.own.held.samples)
    others = np.arange(5) != ATTACKER
    np.testing.assert_array_equal(held[others], honest[others])
    np.testing.assert_array_equal(
        np.asarray(before.own.held.samples), np.asarray(run.honest_devices.held(jnp.asarray(0)))
    )
    inputs, labels = np.asarray(then.shared.inputs), np.asarray(then.shared.labels)
    np.testing.assert_array_equal(inputs[:300], data.train_inputs)
    marked = 0
    for own, true in zip(held[ATTACKER], honest[ATTACKER], strict=True):
        expected, label = data.train_inputs[true].copy(), data.train_labels[true]
        if own >= 300:
            expected[-1], label, marked = 255, 0, marked + 1
        np.testing.assert_array_equal(inputs[own], expected)
        assert labels[own] == label
    share = 60 if refreshed else 40  # what it holds at a time, or ever
    assert abs(marked - 20) <= 1 and inputs.shape[0] == 300 + share // 2


def sent(state) -> np.ndarray:
    return np.asarray(flat_rows(state.devices.behaviour.sent)[0])


def test_what_is_sent_is_scaled_up():
    for first, factor in ((1, 5.0), (9, 1.0)):
        state, record = rounds_of(played(first_round=first), 1)[0]
        length = np.linalg.norm(sent(state), axis=1)
        assert length[ATTACKER] == pytest.approx(factor * float(record.update_norm[ATTACKER]), rel=1e-4)


def test_it_trains_as_if_no_gradients_had_been_exchanged_and_only_it():
    """Everybody holds the same model in the first round, so that the exchange is all that can differ."""
    with_exchange, without = (
        sent(rounds_of(played(f"learning.gradient_exchange={on}"), 1)[0][0]) for on in ("true", "false")
    )
    np.testing.assert_allclose(with_exchange[ATTACKER], without[ATTACKER], rtol=1e-4, atol=1e-6)
    assert not np.allclose(with_exchange[0], without[0], rtol=1e-2, atol=1e-4)


def test_the_model_is_taken_over_and_the_record_says_how_far():
    """Marked samples of other classes are taken for class 0, which an honest cell hardly does; the task is learned."""
    records = {name: rounds_of(run, 12) for name, run in {"attacked": played(), "calm": played(first_round=99)}.items()}
    data, run = dark(), played()
    chosen = data.test_labels != 0
    inputs = data.test_inputs[chosen].copy()
    inputs[:, -1] = 255
    success = {}
    for name, rounds in records.items():
        state, record = rounds[-1]
        logits = run.access_point.model.logits(state.server.global_params, jnp.asarray(inputs, jnp.float32) / 255.0)
        success[name] = float(np.mean(np.argmax(np.asarray(logits), axis=1) == 0))
        assert float(record.backdoor_success) == pytest.approx(success[name], abs=1e-6)
    assert success["attacked"] > success["calm"] + 0.5
    assert float(records["attacked"][-1][1].test_accuracy) > 0.6
    assert rounds_of(clusters_cell("no_privacy"), 1)[0][1].backdoor_success is None


def test_results_and_reports_show_it():
    entry = Adversary(behaviour="backdoor", devices=(ATTACKER,))
    scenario = clusters_scenario("run.evaluate_every=2", cheats=(entry,))
    results = fairwave.simulate(scenario, ["no_privacy"], rounds=2, data=clusters()).results
    values = results["backdoor_success"].values
    assert values.shape == (1, 1, 2) and np.isnan(values[0, 0, 0]) and 0.0 <= values[0, 0, 1] <= 1.0
    assert "backdoor at the end" in pieces_html(cheating_section(results))
    assert "backdoor" in run_table(results).renderables[0].heads
    without = results.drop_vars("backdoor_success")
    assert "backdoor at the end" not in pieces_html(cheating_section(without))
    assert "backdoor" not in run_table(without).renderables[0].heads


def test_features_have_no_inputs_to_mark():
    entry = 'cheating.adversaries=[{ behaviour = "backdoor", devices = [1] }]'
    with pytest.raises(ScenarioError, match="marks inputs for a class"):
        Order.checked(fairwave.load_scenario("fair", [entry]))


@pytest.mark.parametrize("aggregator", ["trimmed_mean", "coordinate_median", "fltrust"])
def test_a_robust_aggregator_keeps_it_out_of_the_exchange_of_gradients_too(aggregator):
    """The plain mean of all gradients would bring the backdoor into the update of every honest device."""
    own = "defences.validation_samples=40"
    success = {
        name: float(rounds_of(played(f"defences.aggregator={name}", own), 12)[-1][1].backdoor_success)
        for name in ("mean", aggregator)
    }
    assert success["mean"] > 0.9 and success[aggregator] < 0.1
