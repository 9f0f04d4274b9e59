"""What every behaviour in the registry must do, and what each of them does."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.adversaries.behaviour import DeviceKnowledge, Habit
from fairwave.engine.cell import SimulatedCell
from fairwave.errors import ScenarioError
from fairwave.extensions import BEHAVIOURS
from fairwave.plugins import load_plugin
from fairwave.policy.effort import effort_model
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary
from tests.builders import clusters_cell, rounds_of

DEVICES, CHEAT = 5, 3
LAZY = ("replay", "zero_update", "noise_update", "echo_model", "echo_update", "disguised")
HONEST_AT_FIRST = ("lazy",)
"""Behaviours that differ from honest ones only once they have received a deviation."""


def cell(*entries: Adversary, scheme: str = "proposed", overrides: tuple[str, ...] = ()) -> SimulatedCell:
    return clusters_cell(scheme, *overrides, devices=DEVICES, cheats=entries)


def rounds(run: SimulatedCell, count: int = 3) -> list:
    return [(state, jax.tree.map(np.asarray, record)) for state, record in rounds_of(run, count)]


@pytest.fixture(scope="module")
def honest() -> list:
    return rounds(cell())


@pytest.mark.parametrize("name", BEHAVIOURS.builtin_names())
def test_every_behaviour_begins_in_its_round_changes_something_and_repeats(honest, name):
    """It begins in round 2: round 1 is that of honest devices, bit for bit, and a later one is not.

    A second cell that goes on from the state after round 1 gives the same rounds again, bit for bit.
    """
    members = (1, CHEAT) if BEHAVIOURS[name].needs_company else (CHEAT,)
    entry = Adversary(behaviour=name, devices=members, first_round=2)
    run = cell(entry)
    seen = rounds(run)
    again = rounds_of(cell(entry), 3, seen[0][0], first=1)
    np.testing.assert_array_equal(seen[0][1].loss, honest[0][1].loss)
    for (state, _), (same, _) in zip(seen[1:], again, strict=True):
        for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(one, other)
    acted = 2 if name in HONEST_AT_FIRST else 1
    models = [jax.tree.leaves(each[acted][0].server.global_params) for each in (seen, honest)]
    assert any((np.asarray(one) != np.asarray(other)).any() for one, other in zip(*models, strict=True))
    for _, record in seen:
        assert np.isfinite(record.loss).all() and ((record.deviation >= 0) & (record.deviation <= 1)).all()
        assert (record.plan.energy_j > 0).all() and (record.plan.local_iterations >= 0).all()
    assert seen[0][1].cheating.sum() == 0 and np.flatnonzero(seen[1][1].cheating).tolist() == list(members)
    plan, planned = seen[1][1].plan, honest[1][1].plan
    if name in LAZY:
        assert plan.local_iterations[CHEAT] == 0 and plan.compute_energy_j[CHEAT] == 0
        assert plan.energy_j[CHEAT] == pytest.approx(planned.transmit_energy_j[CHEAT])
    assert BEHAVIOURS[name].summary and BEHAVIOURS[name].name == name


def test_a_cell_of_honest_devices_remembers_nothing_of_misbehaviour():
    assert cell().start().devices.behaviour is None


def knowledge(**changes) -> DeviceKnowledge:
    draw = np.random.default_rng(1)
    vectors = {
        name: jnp.asarray(draw.normal(size=40), jnp.float32)
        for name in ("received", "received_before", "received_first", "honest", "sent_before", "sent_first")
    }
    given = {
        **vectors,
        "usual_length": jnp.asarray(0.5),
        "strength": jnp.asarray(2.0),
        "round_index": jnp.asarray(3),
        "key": jax.random.key(0),
    }
    return DeviceKnowledge(**{**given, **changes})


def sent(name: str, **changes) -> np.ndarray:
    return np.asarray(BEHAVIOURS[name].replace_update(knowledge(**changes)))


def cosine(one, other) -> float:
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_what_is_sent_instead_of_an_update():
    seen = knowledge()
    change = np.asarray(seen.received - seen.received_before)
    assert cosine(sent("echo_model"), seen.received) == pytest.approx(1) == cosine(sent("echo_update"), change)
    for name in ("echo_model", "echo_update", "noise_update"):
        assert np.linalg.norm(sent(name)) == pytest.approx(2.0 * 0.5, rel=1e-5)
    assert np.linalg.norm(sent("disguised")) == pytest.approx(1.0 / np.sqrt(4), rel=1e-5)
    np.testing.assert_array_equal(sent("replay"), seen.sent_before)
    np.testing.assert_allclose(sent("scaled"), 2 * seen.honest)
    np.testing.assert_allclose(sent("sign_flip"), -2 * seen.honest)
    assert (sent("zero_update") == 0).all()
    assert len(np.unique(sent("quantised", strength=jnp.asarray(3.0)))) == 3
    assert np.count_nonzero(sent("sparsified", strength=jnp.asarray(0.1))) == 4
    assert (sent("echo_update", received_before=seen.received) == 0).all()


def test_what_is_believed_and_learned():
    effort = effort_model(jnp.asarray(0.1), jnp.asarray(1.0))
    assert float(BEHAVIOURS["misreport"].planning_belief(effort, jnp.asarray(1.0)).scale) == 0.0
    adapt, habit = BEHAVIOURS["lazy"].adapts, Habit(share=jnp.asarray(1.0))
    for _ in range(10):
        habit = adapt(habit, jnp.asarray(0.0), jnp.asarray(0.2))
    assert float(habit.share) == pytest.approx(0.8**10)
    assert float(adapt(habit, jnp.asarray(0.9), jnp.asarray(0.2)).share) > float(habit.share)


def test_labels_data_and_copies(honest):
    flipped = rounds(cell(Adversary(behaviour="label_flip", devices=(CHEAT,))), 1)[0][1]
    assert flipped.loss[CHEAT] > honest[0][1].loss[CHEAT]
    assert flipped.received_loss[CHEAT] == honest[0][1].received_loss[CHEAT]  # measured on the true classes
    few = rounds(cell(Adversary(behaviour="part_of_data", devices=(CHEAT,), strength=0.05)), 1)[0][1]
    assert few.loss[CHEAT] != honest[0][1].loss[CHEAT] and few.loss[0] == pytest.approx(honest[0][1].loss[0])
    pool = Adversary(behaviour="coalition", devices=tuple(range(DEVICES)))
    alone, together = rounds(cell(scheme="max_power"), 2)[1], rounds(cell(pool, scheme="max_power"), 2)[1]
    assert together[1].received_loss.mean() < alone[1].received_loss.mean()
    assert np.ptp(together[1].received_loss) < np.ptp(alone[1].received_loss) + 0.2


def test_an_echo_wins_by_the_literal_rule_and_loses_by_leave_one_out():
    """The paper's own similarity makes the free rider the yardstick for everybody else."""
    entry = Adversary(behaviour="echo_model", devices=(CHEAT,), first_round=3)
    deviation = {}
    for rule in ("literal", "leave_one_out"):
        run = cell(entry, overrides=(f"privacy.similarity={rule}", "privacy.sensitivity=0.001"))
        deviation[rule] = np.mean([record.deviation for _, record in rounds(run, 8)[3:]], axis=0)
    others = np.arange(DEVICES) != CHEAT
    assert deviation["literal"][CHEAT] < 1e-6 and deviation["literal"][others].min() > 0.05
    assert deviation["leave_one_out"][CHEAT] > deviation["leave_one_out"][others].max()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('behaviour = "echo_modle", devices = [1]', "did you mean"),
        ('behaviour = "replay", devices = [99]', "device 99 for 'replay'"),
        ('behaviour = "replay", devices = [1], first_round = 5, last_round = 2', "comes before first_round"),
    ],
)
def test_wrong_entries_are_refused(entry, said):
    with pytest.raises(ScenarioError, match=said):
        Order.checked(fairwave.load_scenario("small", ["cell.num_devices=9", f"cheating.adversaries=[{{ {entry} }}]"]))


def test_sampling_on_part_of_the_data_would_break_the_proof():
    text = 'cheating.adversaries=[{ behaviour = "part_of_data", devices = [1] }]'
    with pytest.raises(ScenarioError, match="changes how records are sampled"):
        Order.checked(fairwave.load_scenario("fair-mlp", [text]))


def test_the_tutorials_behaviour_works_as_a_plugin(tmp_path):
    """The code in the documentation is the code that runs here, from a file outside the package."""
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code.splitlines()) < 40
    (tmp_path / "half_hearted.py").write_text(code)
    load_plugin(tmp_path / "half_hearted.py")
    state, record = rounds(cell(Adversary(behaviour="half_hearted", devices=(CHEAT,))), 1)[0]
    sent = jax.tree.leaves(state.devices.behaviour.sent)
    lengths = np.sqrt(sum(np.sum(np.asarray(leaf) ** 2, axis=tuple(range(1, leaf.ndim))) for leaf in sent))
    assert lengths[CHEAT] == pytest.approx(0.5 * record.update_norm[CHEAT], rel=1e-5)
    assert lengths[0] == pytest.approx(record.update_norm[0], rel=1e-5)


def test_the_documentation_names_every_behaviour():
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in BEHAVIOURS.builtin_names())
