"""What every behaviour in the registry must do, and what each of them does."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave import adversaries
from fairwave.adversaries.behaviour import Habit, Witness
from fairwave.data.sources import DataSet
from fairwave.engine.round import Cell
from fairwave.errors import ScenarioError
from fairwave.learning.models import model_of
from fairwave.policy.effort import Effort
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.schemes import ALL as SCHEMES
from tests.oracles.clusters import clusters

DEVICES, CHEAT = 5, 3
REPEATED = ("replay", "noise_update", "lazy", "coalition")
LAZY = ("replay", "zero_update", "noise_update", "echo_model", "echo_update", "disguised")


@pytest.fixture(scope="module")
def data() -> DataSet:
    return clusters()


def cell(data: DataSet, *entries: Adversary, scheme: str = "proposed", overrides: tuple[str, ...] = ()) -> Cell:
    scenario = fairwave.load_scenario(
        "paper-clean",
        [
            f"cell.num_devices={DEVICES}", "learning.layer_sizes=[30, 8, 3]", "learning.batch_size=16",
            "learning.learning_rate=0.05", "compute.bits_per_iteration=802816", *overrides,
        ],
    ).model_copy(update={"cheating": Cheating(adversaries=entries)})  # fmt: skip
    return Cell(scenario, SCHEMES[scheme], model_of(scenario.learning), data)


def rounds(run: Cell, count: int = 3) -> list:
    state, seen = run.start(), []
    for number in range(count):
        state, record = run.round(state, number)
        seen.append((state, jax.tree.map(np.asarray, record)))
    return seen


@pytest.fixture(scope="module")
def honest(data) -> list:
    return rounds(cell(data))


@pytest.mark.parametrize("name", adversaries.ALL)
def test_every_behaviour_runs_repeats_and_leaves_the_rounds_before_alone(data, honest, name):
    """It begins in round 2: round 1 is that of honest devices, bit for bit; the same again gives the same."""
    members = (1, CHEAT) if name == "coalition" else (CHEAT,)
    entry = Adversary(behaviour=name, devices=members, first_round=2)
    seen = rounds(cell(data, entry))
    again = rounds(cell(data, entry)) if name in REPEATED else seen
    np.testing.assert_array_equal(seen[0][1].loss, honest[0][1].loss)
    for (state, record), (same, _) in zip(seen, again, strict=True):
        for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(one, other)
        assert np.isfinite(record.loss).all() and np.isfinite(record.deviation).all()
        assert (record.plan.energy_j > 0).all() and (record.plan.local_iterations >= 0).all()
    assert seen[0][1].cheating.sum() == 0 and np.flatnonzero(seen[1][1].cheating).tolist() == list(members)
    plan, planned = seen[1][1].plan, honest[1][1].plan
    if name in LAZY:
        assert plan.local_iterations[CHEAT] == 0 and plan.compute_energy_j[CHEAT] == 0
        assert plan.energy_j[CHEAT] == pytest.approx(planned.transmit_energy_j[CHEAT])
    assert adversaries.ALL[name].summary and adversaries.ALL[name].name == name


def test_nobody_who_cheats_costs_no_memory(data):
    assert cell(data).start().past is None


def witness(**changes) -> Witness:
    draw = np.random.default_rng(1)
    vectors = {
        name: jnp.asarray(draw.normal(size=40), jnp.float32)
        for name in ("received", "received_before", "honest", "sent_before")
    }
    told = {
        **vectors, "usual_length": jnp.asarray(0.5), "strength": jnp.asarray(2.0), "number": jnp.asarray(3),
        "key": jax.random.key(0),
    }  # fmt: skip
    return Witness(**{**told, **changes})


def sent(name: str, **changes) -> np.ndarray:
    return np.asarray(adversaries.ALL[name].forge(witness(**changes)))


def cosine(one, other) -> float:
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_what_is_forged():
    seen = witness()
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
    effort = Effort(scale=jnp.asarray(0.1), decay_j=jnp.asarray(1.0))
    assert float(adversaries.ALL["misreport"].believes(effort, jnp.asarray(1.0)).scale) == 0.0
    adapt, habit = adversaries.ALL["lazy"].adapts, Habit(share=jnp.asarray(1.0))
    for _ in range(10):
        habit = adapt(habit, jnp.asarray(0.0), jnp.asarray(0.2))
    assert float(habit.share) == pytest.approx(0.8**10)
    assert float(adapt(habit, jnp.asarray(0.9), jnp.asarray(0.2)).share) > float(habit.share)


def test_labels_data_and_copies(data, honest):
    flipped = rounds(cell(data, Adversary(behaviour="label_flip", devices=(CHEAT,))), 1)[0][1]
    assert flipped.loss[CHEAT] > honest[0][1].loss[CHEAT]
    assert flipped.received_loss[CHEAT] == honest[0][1].received_loss[CHEAT]  # measured on the true classes
    few = rounds(cell(data, Adversary(behaviour="part_of_data", devices=(CHEAT,), strength=0.05)), 1)[0][1]
    assert few.loss[CHEAT] != honest[0][1].loss[CHEAT] and few.loss[0] == pytest.approx(honest[0][1].loss[0])
    pool = Adversary(behaviour="coalition", devices=tuple(range(DEVICES)))
    alone, together = rounds(cell(data, scheme="max_power"), 2)[1], rounds(cell(data, pool, scheme="max_power"), 2)[1]
    assert together[1].received_loss.mean() < alone[1].received_loss.mean()
    assert np.ptp(together[1].received_loss) < np.ptp(alone[1].received_loss) + 0.2


def test_an_echo_wins_by_the_literal_rule_and_loses_by_leave_one_out(data):
    """The paper's own similarity makes the free rider the yardstick for everybody else."""
    entry = Adversary(behaviour="echo_model", devices=(CHEAT,), first_round=3)
    deviation = {}
    for rule in ("literal", "leave_one_out"):
        run = cell(data, entry, overrides=(f"privacy.similarity={rule}", "privacy.sensitivity=0.001"))
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
        Order(fairwave.load_scenario("small", ["cell.num_devices=9", f"cheating.adversaries=[{{ {entry} }}]"]))


def test_sampling_on_part_of_the_data_would_break_the_proof():
    text = 'cheating.adversaries=[{ behaviour = "part_of_data", devices = [1] }]'
    with pytest.raises(ScenarioError, match="changes how records are sampled"):
        Order(fairwave.load_scenario("fair", [text]))


def test_the_tutorials_behaviour_works(data, monkeypatch):
    """The code in the documentation is the code that runs here."""
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code.splitlines()) < 40
    module: dict[str, object] = {}
    exec(compile(code, "half_hearted.py", "exec"), module)
    monkeypatch.setitem(adversaries.ALL, "half_hearted", module["half_hearted"])
    entry = Adversary(behaviour="half_hearted", devices=(CHEAT,))
    told = rounds(cell(data, entry), 1)[0]
    past = jax.tree.leaves(told[0].past.sent)
    lengths = np.sqrt(sum(np.sum(np.asarray(leaf) ** 2, axis=tuple(range(1, leaf.ndim))) for leaf in past))
    assert lengths[CHEAT] == pytest.approx(0.5 * told[1].update_norm[CHEAT], rel=1e-5)
    assert lengths[0] == pytest.approx(told[1].update_norm[0], rel=1e-5)


def test_the_documentation_names_every_behaviour():
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in adversaries.ALL)
