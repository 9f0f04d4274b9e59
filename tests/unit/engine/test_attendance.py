"""Who takes part, who comes late, and data that change from round to round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.data.partition import share_out
from fairwave.data.sources import DataSet
from fairwave.engine.invitation import Window, attendance
from fairwave.engine.releases import releases
from fairwave.engine.round import Cell
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.scenario.partition_laws import Iid
from tests.oracles.cells import small_cell
from tests.oracles.clusters import clusters

DEVICES = 6


@pytest.fixture(scope="module")
def data() -> DataSet:
    return clusters()


def cell(data: DataSet, name: str, *overrides: str) -> Cell:
    return small_cell(data, name, f"cell.num_devices={DEVICES}", "learning.learning_rate=0.05", *overrides)


def leaves(tree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def test_only_participants_train_and_everybody_else_is_served(data):
    run = cell(data, "fair_noise_only", "cell.participants=2")
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
        assert (np.asarray(after.deviation)[~asked] == np.asarray(state.deviation)[~asked]).all()
        old, new = leaves(run.copies(state))[1], leaves(run.copies(after))[1]
        assert all((old[k] != new[k]).any() for k in range(DEVICES))
        state = after


def test_participants_are_drawn_evenly():
    """Fixed key. 4,000 rounds of 2 in 6: each is drawn 1,333 times on average, std 30. 6 sigma: false alarm < 1e-8."""
    draw = jax.vmap(lambda number: attendance(DEVICES, 2, 0.0, run_key(1), number).participating)
    times = np.asarray(draw(jnp.arange(4_000))).sum(axis=0)
    assert times.sum() == 8_000 and (np.abs(times - 8_000 / 6) < 6 * 30).all()


def test_the_crowd_is_the_same_for_all_schemes(data):
    seen = []
    for name in ("fair_noise_only", "max_power"):
        run = cell(data, name, "cell.participants=3", "cell.straggler_probability=0.4")
        _, record = run.round(run.start(), 5)
        seen.append((np.asarray(record.participating), np.asarray(record.late)))
    assert (seen[0][0] == seen[1][0]).all() and (seen[0][1] == seen[1][1]).all()


def test_a_straggler_pays_and_gets_nothing(data):
    run = cell(data, "fair_noise_only", "cell.straggler_probability=0.5")
    state = run.start()
    after, record = run.round(state, 0)
    late = np.asarray(record.late)
    assert 0 < late.sum() < DEVICES
    assert (np.asarray(record.plan.energy_j)[late] > 0).all() and not np.asarray(record.delivered)[late].any()
    for old, new in zip(leaves(run.copies(state)), leaves(run.copies(after)), strict=True):
        assert (old[late] == new[late]).all()
    # The model is the mean of the others' updates: as if the late ones were not there.
    everyone = cell(data, "fair_noise_only")
    all_in, _ = everyone.round(everyone.start(), 0)
    assert any((a != b).any() for a, b in zip(leaves(after.global_params), leaves(all_in.global_params), strict=True))


def test_nobody_delivers_and_nothing_moves(data):
    run = cell(data, "fair_noise_only", "cell.straggler_probability=1")
    state = run.start()
    after, record = run.round(state, 0)
    assert not np.asarray(record.delivered).any() and float(np.asarray(record.plan.energy_j).min()) > 0
    prompt = cell(data, "fair_noise_only")
    _, in_time = prompt.round(prompt.start(), 0)
    np.testing.assert_allclose(record.loss, in_time.loss, rtol=1e-5)  # they trained all the same
    for old, new in zip(leaves(state.global_params), leaves(after.global_params), strict=True):
        assert (old == new).all()


def test_the_ledger_names_every_message(data):
    run = cell(
        data, "fair_noise_only", "cell.participants=4", "cell.straggler_probability=0.5", "privacy.local_noise=true"
    )
    _, record = run.round(run.start(), 1)
    told = releases(run.guard, record, gradient_exchange=True, local_std=run.local_std)
    events = {e.content: e for e in told if (e.content, e.sender) != ("gradient", "access point")}
    (mean,) = [e for e in told if (e.content, e.sender) == ("gradient", "access point")]
    assert mean.devices.tolist() == np.flatnonzero(np.asarray(record.participating)).tolist()
    asked, late = np.flatnonzero(np.asarray(record.participating)), np.flatnonzero(np.asarray(record.late))
    assert late.size
    assert events["update"].devices.tolist() == asked.tolist()  # late or not, it has left the device
    assert (events["update"].noise_std == run.local_std).all() and run.local_std > 0
    assert (events["gradient"].noise_std == 0).all()
    assert set(events["model"].devices) == set(range(DEVICES)) - set(late)
    assert set(events["deviation"].devices) == set(asked) - set(late)
    assert all(event.proven_sensitivity is None for event in events.values())
    assert all(event.basis == "data" for event in told)
    quiet = releases(run.guard, record, gradient_exchange=False, local_std=0.0)
    assert "gradient" not in {e.content for e in quiet}


PRIVATE = ("privacy.clip_norm=0.5", "privacy.noise_multiplier=2", "learning.gradient_exchange=false")


@pytest.mark.slow
def test_private_steps_are_on_the_ledger_of_the_device_that_made_them(data):
    """Late or not; what the access point sends is made from messages. A budget caps the plan, then ends taking part."""
    more = ("privacy.mode=provable", "cell.straggler_probability=0.5", *PRIVATE)
    run = cell(data, "fair_noise_only", *more)
    after, record = run.round(run.start(), 1)
    events = {e.content: e for e in releases(run.guard, record, gradient_exchange=False, local_std=0.0)}
    steps = np.asarray(record.plan.local_iterations)
    assert np.asarray(record.late).any() and (steps > 0).all()
    np.testing.assert_array_equal(events["update"].steps, steps)
    np.testing.assert_array_equal(after.spent, steps)
    assert events["update"].proven_sensitivity == 0.5 and (events["update"].noise_std == 1.0).all()
    assert {events[name].basis for name in ("model", "deviation")} == {"messages"}
    budgeted = cell(data, "fair_noise_only", *more, "privacy.max_epsilon=6")
    most = int(budgeted.guard.budget[0])
    state = budgeted.start()
    for number in range(60):
        if not budgeted.can_go_on(state, number):
            break
        state, record = budgeted.round(state, number)
    spent, least = np.asarray(state.spent), np.asarray(budgeted.fleet.device.min_iterations)
    assert (spent <= most).all() and (most - spent < least).all() and number < 60
    idle, last = budgeted.round(state, number)
    assert not np.asarray(last.participating).any() and np.isnan(last.loss).all()
    for old, new in zip(leaves(state.global_params), leaves(idle.global_params), strict=True):
        assert (old == new).all()


def test_central_noise_stays_in_the_model_and_scores_nobody(data):
    run = cell(data, "max_power", "privacy.mode=device", "privacy.copies=nested", *PRIVATE)
    after, record = run.round(run.start(), 0)
    assert float(record.release_sensitivity) == pytest.approx(0.5 / DEVICES)
    assert float(record.release_std) == pytest.approx(2 * 0.5 / DEVICES)
    assert (np.asarray(after.deviation) == 0).all() and not np.asarray(after.score.rounds).any()
    (update, model) = releases(run.guard, record, gradient_exchange=False, local_std=0.0)
    assert update.proven_sensitivity is None and model.proven_sensitivity == float(record.release_sensitivity)
    assert model.subjects.tolist() == list(range(DEVICES)) and (model.noise_std == float(record.release_std)).all()
    for true, copies in zip(leaves(after.global_params), leaves(run.copies(after)), strict=True):
        assert (copies == copies[:1]).all() and copies[0].shape == true.shape


def test_a_window_slides_over_the_share():
    labels = np.zeros(100, np.int32)
    holdings = share_out(Iid(law="iid"), labels, 5, 0, samples_per_device=8, refreshed=3)
    window, before = Window(holdings), None
    for number in range(15):
        held = np.asarray(window.at(jnp.asarray(number)))
        for device in range(5):
            own = held[device, : holdings.counts[device]]
            assert (own == holdings.of(device, number)).all()
            assert np.unique(own).size == 8 and np.isin(own, holdings.samples[device, :20]).all()
            if before is not None:
                assert np.setdiff1d(own, before[device]).size == 3
        before = held


@pytest.mark.slow
def test_refresh_needs_something_new(data):
    with pytest.raises(ScenarioError, match="already holds all 50 samples"):
        cell(data, "fair_noise_only", "data.refreshed_samples=5")
    run = cell(data, "no_privacy", "data.refreshed_samples=5", "data.samples_per_device=20")
    first, second = (run.round(run.start(), number)[1] for number in (0, 1))
    assert not np.allclose(first.received_loss, second.received_loss)  # the same model on other data
