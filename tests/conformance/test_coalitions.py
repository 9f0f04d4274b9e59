"""What coalitions of attackers send: each attack beside a NumPy twin, and that it knows its own training alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from fairwave.adversaries.alie import hidden_deviations
from fairwave.adversaries.behaviour import CoalitionKnowledge
from fairwave.adversaries.min_max import farthest_factor
from fairwave.double_precision import training_precision
from fairwave.engine.active_behaviour import Active
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.replaced_updates import replaced
from fairwave.extensions import BEHAVIOURS
from fairwave.learning.model import flat_rows
from fairwave.scenario.cheating_parameters import Adversary
from tests.builders import clusters_cell, leaves, rounds_of

TOGETHER = tuple(name for name in BEHAVIOURS.builtin_names() if BEHAVIOURS[name].replace_together is not None)
SIZE, MEMBERS = 60, 6


def updates(seed: int = 0, count: int = MEMBERS) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return (draw.normal(size=SIZE) + 0.4 * draw.normal(size=(count, SIZE))).astype(np.float32)


def sent(name: str, rows: np.ndarray, strength: float | None = None, devices: int = 20) -> np.ndarray:
    known = CoalitionKnowledge(
        honest=jnp.asarray(rows),
        num_devices=jnp.asarray(devices),
        strength=jnp.asarray(BEHAVIOURS[name].strength if strength is None else strength),
        keys=jax.random.split(jax.random.key(3), len(rows)),
    )
    return np.asarray(BEHAVIOURS[name].replace_together(known))


def test_the_list_of_coalitions_is_that_of_the_literature():
    assert {"alie", "inner_product", "min_max", "fang", "sybils"} <= set(TOGETHER)
    assert all(BEHAVIOURS[name].needs_company for name in (*TOGETHER, "coalition"))
    assert not BEHAVIOURS["sign_flip"].needs_company


@pytest.mark.parametrize("name", TOGETHER)
def test_every_member_sends_a_finite_update_of_its_own_type_and_one_alone_can_do_it(name):
    for count in (1, 2, MEMBERS):
        found = sent(name, updates(count=count))
        assert found.shape == (count, SIZE) and found.dtype == np.float32 and np.isfinite(found).all()
    assert np.isfinite(sent(name, np.zeros((MEMBERS, SIZE), np.float32))).all()


@pytest.mark.parametrize(("devices", "attackers"), [(50, 24), (50, 12), (21, 8), (20, 4), (100, 40)])
def test_alie_takes_z_from_the_counts(devices, attackers):
    majority = int(np.floor(devices / 2 + 1)) - attackers
    expected = norm.ppf((devices - attackers - majority) / (devices - attackers))
    assert expected > 0.0
    assert float(hidden_deviations(jnp.asarray(devices), attackers)) == pytest.approx(expected, rel=1e-4)
    rows = updates(count=attackers)
    twin = rows.astype(np.float64).mean(axis=0) - 1.5 * expected * rows.astype(np.float64).std(axis=0)
    np.testing.assert_allclose(sent("alie", rows, 1.5, devices), np.tile(twin, (attackers, 1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("devices", "attackers"), [(10, 1), (10, 2), (3, 3), (1, 1), (2, 1), (10, 9)])
def test_alie_moves_nothing_where_nothing_can_be_hidden(devices, attackers):
    found = float(hidden_deviations(jnp.asarray(devices), attackers))
    assert found == 0.0


def test_inner_product_points_against_the_mean():
    rows = updates()
    expected = np.tile(-0.3 * rows.astype(np.float64).mean(axis=0), (MEMBERS, 1))
    np.testing.assert_allclose(sent("inner_product", rows, 0.3), expected, rtol=1e-4, atol=1e-6)


def bisected(rows: np.ndarray, direction: np.ndarray) -> float:
    """The authors' way to find the factor."""
    widest = max(np.linalg.norm(one - other) for one in rows for other in rows)
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        moved = rows.mean(axis=0) + middle * direction
        low, high = (middle, high) if np.linalg.norm(rows - moved, axis=1).max() <= widest else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [2, 3, MEMBERS])
def test_min_max_is_as_far_as_bisection_finds(seed, count):
    rows = updates(seed, count).astype(np.float64)
    direction = -rows.std(axis=0)
    factor = bisected(rows, direction)
    assert factor > 0.0
    assert float(farthest_factor(jnp.asarray(rows), jnp.asarray(direction))) == pytest.approx(factor, rel=1e-3)
    found = sent("min_max", updates(seed, count)).astype(np.float64)
    widest = max(np.linalg.norm(one - other) for one in rows for other in rows)
    assert np.linalg.norm(rows - found[0], axis=1).max() == pytest.approx(widest, rel=1e-3)
    np.testing.assert_allclose(found[0], rows.mean(axis=0) + factor * direction, rtol=1e-3, atol=1e-3)


def test_fang_draws_values_beyond_the_honest_ones_against_their_direction():
    rows = updates(count=12)
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    deviations = (sent("fang", rows) - mean) / spread * -np.sign(mean)
    assert deviations.min() > 3.0 - 1e-3 and deviations.max() < 4.0 + 1e-3
    assert abs(deviations.mean() - 3.5) < 0.05  # 720 uniform draws: std of their mean 0.011
    assert len(np.unique(deviations.round(5))) > 0.95 * deviations.size  # every member draws for itself


def test_sybils_send_one_update_with_small_differences():
    rows = updates()
    found = sent("sybils", rows, 0.1)
    np.testing.assert_array_equal(found[0], rows[0])
    apart = np.linalg.norm(found[1:] - rows[0], axis=1) / np.linalg.norm(rows[0])
    np.testing.assert_allclose(apart, 0.1, rtol=1e-4)
    assert len(np.unique(found, axis=0)) == MEMBERS
    assert BEHAVIOURS["sybils"].flips_labels


# Coalitions in a cell


def cell(*entries: Adversary, devices: int = 6) -> SimulatedCell:
    return clusters_cell("proposed", devices=devices, cheats=entries)


def parts(run: SimulatedCell) -> tuple:
    """A first round of a cell up to what its devices trained."""
    access_point, devices, state = run.access_point, run.devices, run.start()
    first = jnp.asarray(0)
    invitation = access_point.invite(state.server, first)
    plans = devices.plan(state.devices, invitation, devices.draw_channels(first), None)
    participants = devices.gather(state.devices, state.server, invitation, plans, first)
    return state, participants, devices.train(participants, devices.take_gradients(participants), None)


@pytest.mark.parametrize("name", TOGETHER)
def test_a_coalition_knows_its_members_updates_and_nobody_elses(name):
    """Whatever other devices train does not change what the coalition sends, and what the others send stays theirs."""
    with training_precision():
        state, participants, trained = parts(cell(Adversary(behaviour=name, devices=(1, 4, 5))))
        mask = np.isin(np.arange(6), (1, 4, 5))
        acting = [Active(BEHAVIOURS[name], mask, BEHAVIOURS[name].strength)]
        everyone = np.ones(6, bool)
        others_differ = jax.tree.map(
            lambda leaf: jnp.where(jnp.asarray(mask).reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 7.0 * leaf + 1.0),
            trained.updates,
        )
        one = replaced(acting, trained.updates, participants, state.devices.behaviour, everyone)
        other = replaced(acting, others_differ, participants, state.devices.behaviour, everyone)
        rows, honest, given = (np.asarray(flat_rows(tree)[0]) for tree in (one, trained.updates, other))
        np.testing.assert_array_equal(rows[mask], given[mask])
        np.testing.assert_array_equal(rows[~mask], honest[~mask])
        assert (rows[mask] != honest[mask]).any()
        fewer = replaced(acting, trained.updates, participants, state.devices.behaviour, np.arange(6) != 4)
        np.testing.assert_array_equal(np.asarray(flat_rows(fewer)[0])[4], honest[4])  # it sends nothing at all


CROWD = (
    Adversary(behaviour="alie", devices=(0, 1)),
    Adversary(behaviour="min_max", devices=(2, 3, 4)),
    Adversary(behaviour="sign_flip", devices=(5,)),
    Adversary(behaviour="label_flip", devices=(6, 7), first_round=2),
    Adversary(behaviour="zero_update", devices=(7,), first_round=2),
)
"""Eight of twenty devices: 40 %. One of them does two things."""


def test_a_mixed_crowd_misbehaves_at_once():
    """Each behaviour acts on its own devices as if it were alone, in its own rounds."""
    mixed = rounds_of(cell(*CROWD, devices=20), 2)
    assert np.flatnonzero(mixed[0][1].cheating).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(mixed[1][1].cheating).tolist() == list(range(8))
    first_sent = np.asarray(flat_rows(mixed[0][0].devices.behaviour.sent)[0])
    for entry in CROWD[:3]:
        alone = rounds_of(cell(entry, devices=20), 1)[0][0].devices.behaviour.sent
        members = list(entry.devices)
        np.testing.assert_array_equal(first_sent[members], np.asarray(flat_rows(alone)[0])[members])
    honest = rounds_of(cell(Adversary(behaviour="sign_flip", devices=(5,)), devices=20), 1)[0][0].devices.behaviour.sent
    np.testing.assert_array_equal(first_sent[6:], np.asarray(flat_rows(honest)[0])[6:])
    second_sent = np.asarray(flat_rows(mixed[1][0].devices.behaviour.sent)[0])
    assert (second_sent[7] == 0.0).all() and (second_sent[6] != 0.0).any()
    assert all(np.isfinite(leaf).all() for leaf in leaves(mixed[1][0].server.global_params))
