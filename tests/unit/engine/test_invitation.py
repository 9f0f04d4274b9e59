"""Who takes part, who comes late, and data that change from round to round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.double_precision import training_precision
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.invitation import draw_participants
from fairwave.engine.round_record import ledger_events
from fairwave.engine.state import State
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.runs.experiment import run_rounds
from tests.builders import clusters_cell, leaves

DEVICES = 6


def cell(name: str, *overrides: str) -> SimulatedCell:
    return clusters_cell(name, *overrides, devices=DEVICES)


def sent_updates(run: SimulatedCell, state: State) -> list[np.ndarray]:
    """What all devices send in the first round, leaf by leaf, with a leading device axis."""
    with training_precision():
        number = jnp.asarray(0)
        invitation = run.access_point.invite(state.server, number)
        channels = run.devices.draw_channels(number)
        plans = run.devices.plan(state.devices, invitation, channels, None)
        participants = run.devices.gather(state.devices, state.server, invitation, plans, number)
        gradients = run.devices.take_gradients(participants)
        mean = run.access_point.mean_gradient(state.server, invitation, plans.arrives, gradients.gradients, number)
        return leaves(run.devices.train(participants, gradients, mean).updates)


def test_only_participants_train_and_everybody_else_is_served():
    run = cell("fair_noise_only", "cell.participants=2")
    state = run.start()
    for number in range(3):
        after, record = run.round(state, number)
        asked = np.asarray(record.participating)
        assert asked.sum() == 2
        for name in ("energy_j", "local_iterations"):
            values = np.asarray(getattr(record.plan, name))
            assert (values[~asked] == 0).all() and (values[asked] > 0).all()
        assert np.isnan(np.asarray(record.loss)[~asked]).all() and np.isfinite(np.asarray(record.loss)[asked]).all()
        # Deviation and memory of the others stay, but their copies are new.
        assert (np.asarray(after.server.deviation)[~asked] == np.asarray(state.server.deviation)[~asked]).all()
        old, new = leaves(run.copies(state))[1], leaves(run.copies(after))[1]
        assert all((old[k] != new[k]).any() for k in range(DEVICES))
        state = after


def test_participants_are_drawn_evenly():
    """Fixed key. 4,000 rounds of 2 in 6: each is drawn 1,333 times on average, std 30. 6 sigma: false alarm < 1e-8."""
    draw = jax.vmap(lambda number: draw_participants(DEVICES, 2, 0.0, run_key(1), number).participating)
    times = np.asarray(draw(jnp.arange(4_000))).sum(axis=0)
    assert times.sum() == 8_000 and (np.abs(times - 8_000 / 6) < 6 * 30).all()


def test_the_crowd_is_the_same_for_all_schemes():
    seen = []
    for name in ("fair_noise_only", "max_power"):
        run = cell(name, "cell.participants=3", "cell.straggler_probability=0.4")
        _, record = run.round(run.start(), 5)
        seen.append((np.asarray(record.participating), np.asarray(record.late)))
    assert (seen[0][0] == seen[1][0]).all() and (seen[0][1] == seen[1][1]).all()


def test_a_straggler_pays_and_gets_nothing():
    run = cell("fair_noise_only", "cell.straggler_probability=0.5")
    state = run.start()
    after, record = run.round(state, 0)
    late = np.asarray(record.late)
    assert 0 < late.sum() < DEVICES
    assert (np.asarray(record.plan.energy_j)[late] > 0).all() and not np.asarray(record.delivered)[late].any()
    for old, new in zip(leaves(run.copies(state)), leaves(run.copies(after)), strict=True):
        assert (old[late] == new[late]).all()
    # The model is the mean of the others' updates, each of which is the same as in a cell without stragglers.
    updates = sent_updates(cell("fair_noise_only"), state)
    for old, new, rows in zip(
        leaves(state.server.global_params), leaves(after.server.global_params), updates, strict=True
    ):
        np.testing.assert_allclose(new, old + rows[~late].mean(axis=0), atol=1e-6)


def test_nobody_delivers_and_nothing_moves():
    run = cell("fair_noise_only", "cell.straggler_probability=1")
    state = run.start()
    after, record = run.round(state, 0)
    assert not np.asarray(record.delivered).any() and float(np.asarray(record.plan.energy_j).min()) > 0
    prompt = cell("fair_noise_only")
    _, in_time = prompt.round(prompt.start(), 0)
    np.testing.assert_allclose(record.loss, in_time.loss, rtol=1e-5)  # they trained all the same
    for old, new in zip(leaves(state.server.global_params), leaves(after.server.global_params), strict=True):
        assert (old == new).all()


def test_the_ledger_names_every_message():
    run = cell("fair_noise_only", "cell.participants=4", "cell.straggler_probability=0.5", "privacy.local_noise=true")
    _, record = run.round(run.start(), 1)
    told = ledger_events(run.access_point, record, 0)
    events = {e.content: e for e in told if (e.content, e.sender) != ("gradient", "access point")}
    (mean,) = [e for e in told if (e.content, e.sender) == ("gradient", "access point")]
    assert mean.devices.tolist() == np.flatnonzero(np.asarray(record.participating)).tolist()
    asked, late = np.flatnonzero(np.asarray(record.participating)), np.flatnonzero(np.asarray(record.late))
    assert late.size
    assert events["update"].devices.tolist() == asked.tolist()  # late or not, it has left the device
    assert (events["update"].noise_std == run.access_point.update_std(0)).all() and run.access_point.update_std(0) > 0
    assert (events["gradient"].noise_std == 0).all()
    assert set(events["model"].devices) == set(range(DEVICES)) - set(late)
    assert set(events["deviation"].devices) == set(asked) - set(late)
    assert all(event.proven_sensitivity is None for event in events.values())
    assert all(event.basis == "data" for event in told)
    quiet = ledger_events(cell("fair_noise_only", "learning.gradient_exchange=false").access_point, record, 0)
    assert "gradient" not in {e.content for e in quiet}


PRIVATE = ("privacy.clip_norm=0.5", "privacy.noise_multiplier=2", "learning.gradient_exchange=false")


@pytest.mark.slow
def test_private_steps_are_on_the_ledger_of_the_device_that_made_them():
    """Late or not; what the access point sends is made from messages. A budget caps the plan, then ends taking part."""
    more = ("privacy.mode=provable", "cell.straggler_probability=0.5", *PRIVATE)
    run = cell("fair_noise_only", *more)
    after, record = run.round(run.start(), 1)
    events = {e.content: e for e in ledger_events(run.access_point, record, 0)}
    steps = np.asarray(record.plan.local_iterations)
    assert np.asarray(record.late).any() and (steps > 0).all()
    np.testing.assert_array_equal(events["update"].steps, steps)
    np.testing.assert_array_equal(after.server.budget_spent, steps)
    assert events["update"].proven_sensitivity == 0.5 and (events["update"].noise_std == 1.0).all()
    assert {events[name].basis for name in ("model", "deviation")} == {"messages"}
    budgeted = cell("fair_noise_only", *more, "privacy.max_epsilon=6")
    most = int(budgeted.access_point.enforced.budget[0])
    state = budgeted.start()
    seen = list(run_rounds(budgeted, 60, state))
    state, number = seen[-1].state, len(seen)
    assert seen[-1].ended is EndReason.BUDGET_SPENT and all(done.ended is None for done in seen[:-1])
    spent = np.asarray(state.server.budget_spent)
    least = np.asarray(budgeted.honest_devices.fleet.device.min_iterations)
    assert (spent <= most).all() and (most - spent < least).all() and number < 60
    idle, last = budgeted.round(state, number)
    assert not np.asarray(last.participating).any() and np.isnan(last.loss).all()
    for old, new in zip(leaves(state.server.global_params), leaves(idle.server.global_params), strict=True):
        assert (old == new).all()


def test_central_noise_stays_in_the_model_and_scores_nobody():
    run = cell("max_power", "privacy.mode=device", "privacy.copies=nested", *PRIVATE)
    after, record = run.round(run.start(), 0)
    assert float(record.release_sensitivity) == pytest.approx(0.5 / DEVICES)
    assert float(record.release_std) == pytest.approx(2 * 0.5 / DEVICES)
    assert (np.asarray(after.server.deviation) == 0).all() and not np.asarray(after.server.score.rounds).any()
    (update, model) = ledger_events(run.access_point, record, 0)
    assert update.proven_sensitivity is None and model.proven_sensitivity == float(record.release_sensitivity)
    assert model.subjects.tolist() == list(range(DEVICES)) and (model.noise_std == float(record.release_std)).all()
    for true, copies in zip(leaves(after.server.global_params), leaves(run.copies(after)), strict=True):
        assert (copies == copies[:1]).all() and copies[0].shape == true.shape


def test_a_window_slides_over_the_share():
    """The same samples by the engine's arrays and by the partition's own count; three of eight are new every round."""
    run = cell("no_privacy", "data.samples_per_device=8", "data.refreshed_samples=3", f"cell.num_devices={DEVICES}")
    holdings, before = run.honest_devices.holdings, None
    for number in range(15):
        held = np.asarray(run.honest_devices.held(jnp.asarray(number)))
        for device in range(DEVICES):
            own = held[device, : holdings.counts[device]]
            assert (own == holdings.of(device, number)).all()
            assert np.unique(own).size == 8 and np.isin(own, holdings.samples[device, : holdings.shares[device]]).all()
            if before is not None:
                assert np.setdiff1d(own, before[device]).size == 3
        before = held


@pytest.mark.slow
def test_refresh_needs_something_new():
    with pytest.raises(ScenarioError, match="already holds all 50 samples"):
        cell("fair_noise_only", "data.refreshed_samples=5")
    run = cell("no_privacy", "data.refreshed_samples=5", "data.samples_per_device=20")
    first, second = (run.round(run.start(), number)[1] for number in (0, 1))
    assert not np.allclose(first.received_loss, second.received_loss)  # the same model on other data
