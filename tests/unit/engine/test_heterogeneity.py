"""Devices that move, fade slowly, run out of charge, come and go."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.invitation import draw_participants
from fairwave.engine.presence import Presence
from fairwave.engine.round_record import as_arrays, ledger_events
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.policy.problem import compute_energy_j
from fairwave.runs.experiment import run_rounds
from fairwave.scenario.cheating_parameters import Adversary
from tests.builders import clusters_cell, leaves, rounds_of

DEVICES = 6
RADIAL = "cell.mobility={ law='radial', max_speed_m_per_s='80 m/s', near_m=30, far_m=250 }"


def cell(name: str, *overrides: str, cheats: tuple[Adversary, ...] = ()) -> SimulatedCell:
    return clusters_cell(name, *overrides, devices=DEVICES, cheats=cheats)


@pytest.mark.slow
def test_a_moving_device_plans_where_it_is():
    """A round of a moving cell is that of a cell whose devices stand where they have got to."""
    run = cell("max_power", RADIAL)
    _, record = run.round(run.start(), 3)
    where = np.asarray(record.distance_now_m)
    assert (np.abs(where - run.access_point.geometry()["distance_m"]) > 1).sum() >= DEVICES - 1
    still = cell("max_power", f"cell.placement={{ law='list', distance_m={where.tolist()} }}")
    _, there = still.round(still.start(), 3)
    assert there.distance_now_m is None and "distance_now_m" not in as_arrays(there)
    for one, other in zip(leaves(record.plan), leaves(there.plan), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    np.testing.assert_array_equal(as_arrays(record)["distance_now_m"], where)


@pytest.mark.slow
def test_slow_fading_repeats_itself_and_fast_fading_does_not():
    """A Doppler shift of 1 uHz is a cycle in eleven days; at 1 Hz, rounds of 0.75 s are three quarters of one apart."""
    rate = {}
    for name in ("1e-6 Hz", "1 Hz"):
        run = cell("max_power", f"radio.doppler_hz='{name}'", "cell.participants=2")
        rate[name] = np.array([record.plan.uplink_rate_bps for _, record in rounds_of(run, 6)])
    slow = np.array([column[column > 0].std() for column in rate["1e-6 Hz"].T])
    fast = np.array([column[column > 0].std() for column in rate["1 Hz"].T if (column > 0).sum() > 1])
    assert slow.max() < 10 and fast.min() > 1e3  # bit/s


BATTERY = (
    "radio.payload_bits='1 kbit'",
    "compute.min_iterations=40",
    "utility.required_iterations=40",
    "compute.battery_capacity_j=[0.03, '50 mJ', 0.06, 0.08, 0.1, 0.11]",
)
CAPACITY_J = np.array([0.03, 0.05, 0.06, 0.08, 0.1, 0.11])


@pytest.mark.slow
def test_a_battery_lasts_for_as_many_rounds_as_it_covers():
    """Forty iterations are 23.1 mJ and a tiny upload next to nothing: 1, 2, 2, 3, 4 and 4 rounds. Then all is over."""
    run = cell("least_energy", *BATTERY)
    seen = rounds_of(run, 20)
    there = np.array([record.participating for _, record in seen])
    energy_j = np.array([record.plan.energy_j for _, record in seen])
    assert there.sum(axis=0).tolist() == [1, 2, 2, 3, 4, 4] and len(seen) == 4
    assert (energy_j.sum(axis=0) <= CAPACITY_J * (1 + 1e-12)).all() and ((energy_j > 0) == there).all()
    np.testing.assert_allclose(seen[-1][0].devices.used_energy_j, energy_j.sum(axis=0), rtol=1e-12)
    # An empty device neither computes nor sends, keeps its deviation, and still gets copies.
    (before, _), (after, record) = seen[1:3]
    empty = ~there[2]
    assert empty.tolist() == [True, True, True, False, False, False]
    assert (record.plan.local_iterations[empty] == 0).all() and not record.delivered[empty].any()
    assert np.isnan(record.loss[empty]).all() and np.isfinite(record.loss[~empty]).all()
    assert record.served[empty].all() and (np.asarray(after.server.deviation == before.server.deviation)[empty]).all()
    ends = [done.ended for done in run_rounds(run, 20)]
    assert ends == [None, None, None, EndReason.BATTERIES_EMPTY]


def test_batteries_are_charged_for_what_was_done():
    """A device that plans forty iterations and does none pays for its upload; its plan must be covered all the same."""
    cheat = Adversary(behaviour="zero_update", devices=(0, 1))
    run = cell("least_energy", *BATTERY[:3], "compute.battery_capacity_j=[0.024, 0.02, 1, 1, 1, 1]", cheats=(cheat,))
    seen = rounds_of(run, 4)
    used = np.asarray(seen[-1][0].devices.used_energy_j)
    there = np.array([record.participating for _, record in seen])
    assert there[:, 0].all() and not there[:, 1].any() and 0 < used[0] < 1e-3 and used[1] == 0
    least_j = float(compute_energy_j(run.honest_devices.fleet.device, run.honest_devices.fleet.device.min_iterations))
    assert (used[2:] > 4 * least_j).all()


def test_charge_that_no_channel_is_good_enough_for_makes_idle_rounds():
    """A round costs more than the charge, and less would do only in theory: nobody takes part, nothing moves."""
    run = cell("max_power", "compute.battery_capacity_j='8 mJ'")
    seen = rounds_of(run, 2)
    assert len(seen) == 2 and not any(record.participating.any() for _, record in seen)
    for old, new in zip(
        leaves(run.start().server.global_params), leaves(seen[-1][0].server.global_params), strict=True
    ):
        assert (old == new).all()


def test_batteries_too_small_for_any_round_are_refused():
    told = r"battery_capacity_j: 0.001 J before the first round is less than any round costs \(0.0057"
    with pytest.raises(ScenarioError, match=told):
        cell("max_power", "compute.battery_capacity_j='1 mJ'")


COMING_AND_GOING = ("cell.arrival_round=[1, 1, 3, 1, 2, 1]", "cell.departure_round=[9, 2, 9, 1, 9, 9]")
THERE = np.array([[1, 1, 0, 1, 0, 1], [1, 1, 0, 0, 1, 1], [1, 0, 1, 0, 1, 1], [1, 0, 1, 0, 1, 1]], bool)
"""By hand, of the first four rounds."""


def test_devices_take_part_while_they_are_there():
    run = cell("fair_noise_only", *COMING_AND_GOING)
    seen = rounds_of(run, 4)
    assert (np.array([record.participating for _, record in seen]) == THERE).all()
    before = run.start()
    for number, (after, record) in enumerate(seen):
        served = THERE[number] | THERE[min(number + 1, 3)]
        assert (np.asarray(record.served) == served).all()
        changed = [
            (old != new).any() for old, new in zip(*(leaves(run.copies(s))[1] for s in (before, after)), strict=True)
        ]
        assert (np.array(changed) == served).all()
        events = {e.content: e for e in ledger_events(run.access_point, record, 0)}
        assert events["model"].devices.tolist() == np.flatnonzero(served).tolist()
        assert (np.asarray(record.plan.energy_j)[~THERE[number]] == 0).all()
        before = after


def test_who_arrives_holds_the_newest_model():
    """Without noise a copy is the model itself, so that the copy it starts from can be told."""
    run = cell("no_privacy", *COMING_AND_GOING)
    seen = rounds_of(run, 3)
    first, second = seen[0][0], seen[1][0]
    for newest, initial, copies in zip(
        *map(leaves, (second.server.global_params, run.copies(first), run.copies(second))), strict=True
    ):
        assert (copies[2] == newest).all() and not (copies[2] == initial[2]).all()
    everyone = rounds_of(cell("no_privacy"), 1)[0][1]
    assert seen[2][1].received_loss[2] < everyone.received_loss[2]  # better than what it would have started with


def test_the_draw_is_among_those_who_are_there():
    """3 of 6 are asked: all of 2 while 2 are there, 3 of 5 after that; 4,000 rounds, 6 sigma, false alarm < 1e-8."""
    arrival = jnp.array([0, 0, 100, 100, 100, 10_000]).astype(float)
    some = Presence(arrival, jnp.full(DEVICES, jnp.inf))
    draw = jax.vmap(lambda number: draw_participants(DEVICES, 3, 0.0, run_key(1), number, some).participating)
    asked = np.asarray(draw(jnp.arange(4_100)))
    assert (asked[:100] == [1, 1, 0, 0, 0, 0]).all()
    assert (asked[100:].sum(axis=1) == 3).all() and not asked[100:, 5].any()
    times, std = asked[100:, :5].sum(axis=0), np.sqrt(4_000 * 0.6 * 0.4)
    assert (np.abs(times - 2_400) < 6 * std).all()


def test_the_draw_among_all_is_the_old_one():
    """Known by heart: results must not move for cells that nobody joins or leaves."""
    always = Presence(jnp.zeros(DEVICES), jnp.full(DEVICES, jnp.inf))
    for number in range(20):
        line = jax.random.permutation(
            jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(run_key(1), number), 8), 0), jnp.arange(DEVICES)
        )
        for presence in (None, always):
            there = draw_participants(DEVICES, 2, 0.0, run_key(1), jnp.asarray(number), presence)
            assert there.participants.tolist() == sorted(line[:2].tolist()) and there.reachable.all()


def test_when_all_have_left_it_is_over():
    left = list(run_rounds(cell("max_power", "cell.departure_round=2"), 5))
    assert [done.ended for done in left] == [None, EndReason.EVERYBODY_LEFT]
    gap = cell("max_power", "cell.arrival_round=[1, 4, 4, 4, 4, 4]", "cell.departure_round=[1, 5, 5, 5, 5, 5]")
    assert [int(record.participating.sum()) for _, record in rounds_of(gap, 9)] == [1, 0, 0, 5, 5]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["cell.arrival_round=3", "cell.departure_round=[3, 3, 2, 3, 3, 3]"],
            "device 2 leaves after round 2 and arrives",
        ),
        (["cell.arrival_round=3"], "nobody is there before round 3"),
        (["cell.arrival_round=[1, 2]"], "2 values for 6 devices"),
    ],
)
def test_impossible_stays_are_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        cell("max_power", *overrides)


@pytest.mark.slow
def test_a_run_with_everything_resumes_exactly():
    """Any round follows from the state before it and its number."""
    run = cell(
        "proposed",
        RADIAL,
        "radio.doppler_hz='0.4 Hz'",
        "cell.participants=3",
        *COMING_AND_GOING,
        "compute.battery_capacity_j='1 J'",
        'defences.use=["watermark", "replay_check", "projection", "reputation"]',
    )
    seen = rounds_of(run, 4)
    again = rounds_of(run, 4, seen[1][0], first=2)
    for one, other in zip(leaves(seen[2:]), leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)
