"""What every defence in the registry must do, and what each of them does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave import adversaries, defences
from fairwave.data.sources import DataSet
from fairwave.defences.defence import PAST, Evidence, sketches
from fairwave.defences.judgement import judge
from fairwave.engine.round import Cell
from fairwave.errors import ScenarioError
from fairwave.learning.models import model_of
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.defence_parameters import Defences
from fairwave.schemes import ALL as SCHEMES
from tests.oracles.clusters import clusters

DEVICES, CHEAT, SIZE = 5, 3, 400
PAST_UPDATES = np.random.default_rng(8).normal(size=(PAST, DEVICES, SIZE))
EVERYTHING = tuple(defences.ALL)


def evidence(**changes) -> Evidence:
    """Honest devices: a common direction, and something of their own."""
    draw = np.random.default_rng(5)
    vectors = {
        "copy_noise": jnp.asarray(draw.normal(size=(PAST, DEVICES, SIZE))),
        "copy_change": jnp.asarray(draw.normal(size=(DEVICES, SIZE))),
        "last_sketches": jax.vmap(sketches)(jnp.asarray(PAST_UPDATES)),
    }
    common = draw.normal(size=SIZE)
    told = {
        "updates": jnp.asarray(common + draw.normal(size=(DEVICES, SIZE))),
        "arrived": jnp.ones(DEVICES, bool),
        "told_noise_std": jnp.zeros(DEVICES),
        "model": jnp.asarray(draw.normal(size=SIZE)),
        "gain": jnp.full(DEVICES, 0.1),
    }
    return Evidence(**{**vectors, **told, **changes})


def replaced(told: Evidence, update) -> Evidence:
    return dataclasses.replace(told, updates=told.updates.at[CHEAT].set(update))


def caught(told: Evidence, *use: str) -> list[int]:
    return np.flatnonzero(np.asarray(judge(Defences(use=use), told).caught)).tolist()


def test_honest_devices_are_left_alone():
    judged = judge(Defences(use=EVERYTHING), evidence())
    assert not np.asarray(judged.caught).any() and np.asarray(judged.credit).min() > 0.9
    plain = judge(Defences(), evidence())
    np.testing.assert_array_equal(plain.updates, evidence().updates)
    np.testing.assert_array_equal(plain.compared, evidence().updates)


@pytest.mark.parametrize("update", [np.nan, np.inf, 0.0, 1e3, 1e30])
def test_validation(update):
    assert caught(replaced(evidence(), jnp.full(SIZE, update)), "validation") == [CHEAT]


def test_watermark_and_replay_and_held_out():
    told = evidence()
    for noise in told.copy_noise[:, CHEAT]:  # an old copy is no better to echo
        for echo in (noise, told.model + noise):
            assert caught(replaced(told, echo), "watermark") == [CHEAT]
        assert caught(replaced(told, told.updates[CHEAT] - noise), "watermark") == []  # honest training takes it off
    for old in PAST_UPDATES[:, CHEAT]:
        assert caught(replaced(told, 3.0 * jnp.asarray(old)), "replay_check") == [CHEAT]
    nothing_yet = dataclasses.replace(told, last_sketches=jnp.zeros_like(told.last_sketches))
    assert caught(nothing_yet, "replay_check") == []
    assert caught(evidence(gain=jnp.array([0.1, 0.2, 0.1, 0.005, 0.3])), "held_out") == [CHEAT]
    assert caught(evidence(gain=jnp.array([0.1, 0.2, 0.1, jnp.nan, 0.3])), "held_out") == [CHEAT]
    assert caught(evidence(gain=jnp.array([-0.1, -0.2, -0.1, 0.1, -0.3])), "held_out") == []


def test_clipping_projection_and_told_noise():
    told = evidence()
    longer = replaced(told, 9.0 * told.updates[CHEAT])
    lengths = np.linalg.norm(judge(Defences(use=("norm_clipping",)), longer).updates, axis=1)
    before = np.linalg.norm(longer.updates, axis=1)
    most = 2.0 * np.median(before)
    assert lengths[CHEAT] == pytest.approx(most, rel=1e-3) and lengths.max() <= most
    np.testing.assert_allclose(np.delete(lengths, CHEAT), np.delete(before, CHEAT), rtol=1e-6)
    echo = replaced(told, 2.0 * told.model - told.copy_noise[0, CHEAT] + told.copy_change[CHEAT])
    judged = judge(Defences(use=("projection",)), echo)
    assert judged.credit[CHEAT] < 1e-6 and np.asarray(judged.credit)[np.arange(DEVICES) != CHEAT].min() > 0.9
    for rest, own in zip(judged.compared, told.copy_noise[0], strict=True):
        assert abs(float(rest @ told.model)) < 1e-6 and abs(float(rest @ own)) < 1e-6
    noisy = jnp.asarray(np.random.default_rng(6).normal(0, 0.3, (DEVICES, 20_000)))
    blank = jnp.zeros_like(noisy)
    flatterer = evidence(
        updates=noisy, copy_noise=blank[None], copy_change=blank, model=blank[0],
        told_noise_std=jnp.array([0.3, 0.3, 0.3, 0.9, 0.1]),
    )  # fmt: skip
    believed = judge(Defences(use=("noise_check",)), flatterer).told_noise_std
    np.testing.assert_allclose(believed, [0.3, 0.3, 0.3, 0.3, 0.1], rtol=0.03)


def test_sketches_keep_cosines():
    one, other = np.random.default_rng(2).normal(size=(2, 1, 50_000))
    mixed = 0.8 * one + 0.6 * other
    true = float((one @ mixed.T / np.linalg.norm(one) / np.linalg.norm(mixed))[0, 0])
    short = [np.asarray(sketches(jnp.asarray(vector)))[0] for vector in (one, mixed, 3.0 * one)]
    near = short[0] @ short[1] / np.linalg.norm(short[0]) / np.linalg.norm(short[1])
    assert near == pytest.approx(true, abs=0.1) and short[2] == pytest.approx(3.0 * short[0])


def test_the_first_that_catches_is_named_and_others_are_judged_without_it():
    told = replaced(evidence(), 1e3 * evidence().copy_noise[0, CHEAT])
    judged = judge(Defences(use=("watermark", "validation", "norm_clipping")), told)
    assert judged.findings[CHEAT] == 1 << EVERYTHING.index("validation")
    assert np.linalg.norm(judged.updates[CHEAT]) == 0.0


@pytest.fixture(scope="module")
def data() -> DataSet:
    return clusters()


def rounds(data: DataSet, use, *entries: Adversary, count: int = 4, overrides=()) -> list:
    scenario = fairwave.load_scenario(
        "paper-clean",
        [
            f"cell.num_devices={DEVICES}", "learning.layer_sizes=[30, 8, 3]", "learning.batch_size=16",
            "learning.learning_rate=0.05", "compute.bits_per_iteration=802816", "privacy.similarity=leave_one_out",
            "defences.validation_samples=40", *overrides,
        ],
    )  # fmt: skip
    chosen = scenario.defences.model_copy(update={"use": tuple(use)})
    scenario = scenario.model_copy(update={"cheating": Cheating(adversaries=entries), "defences": chosen})
    run = Cell(scenario, SCHEMES["proposed"], model_of(scenario.learning), data)
    state, seen = run.start(), []
    for number in range(count):
        state, record = run.round(state, number)
        seen.append((state, jax.tree.map(np.asarray, record)))
    return seen


def test_without_defences_nothing_is_kept(data):
    state, record = rounds(data, (), count=1)[0]
    assert state.dossier is None and (record.findings == 0).all()


def test_all_defences_together_run_and_repeat(data):
    seen, again = (rounds(data, EVERYTHING, count=3) for _ in range(2))
    for (state, record), (same, _) in zip(seen, again, strict=True):
        assert np.isfinite(record.loss).all() and np.isfinite(record.deviation).all()
        for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(one, other)
    assert all(defence.summary and defence.name == name for name, defence in defences.ALL.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYTHING)
def test_every_defence_runs_alone(data, name):
    for _, record in rounds(data, (name,), count=2):
        assert np.isfinite(record.loss).all() and np.isfinite(record.deviation).all()


def test_whoever_is_caught_deviates_fully_and_is_not_used(data):
    entry = Adversary(behaviour="echo_model", devices=(CHEAT,), first_round=2)
    loud = ("defences.watermark_threshold=0.5", "privacy.sensitivity=0.05")  # so small a model drowns little noise
    watched, honest = rounds(data, ("watermark",), entry, overrides=loud), rounds(data, ("watermark",), overrides=loud)
    bit = 1 << EVERYTHING.index("watermark")
    for number, (_, record) in enumerate(watched):
        assert record.findings[CHEAT] == (bit if number else 0)
        assert number == 0 or record.deviation[CHEAT] == 1.0
    gap = np.abs(np.asarray(watched[1][0].global_params[0]["weight"]) - honest[1][0].global_params[0]["weight"])
    assert gap.max() < 0.1  # the mean of four honest updates instead of five


def test_updates_that_are_not_finite_never_reach_the_model(data, monkeypatch):
    """With or without defences."""
    wild = dataclasses.replace(adversaries.ALL["scaled"], forge=lambda witness: witness.honest * jnp.nan)
    monkeypatch.setitem(adversaries.ALL, "scaled", wild)
    for state, record in rounds(data, (), Adversary(behaviour="scaled", devices=(CHEAT,)), count=2):
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.global_params))
        assert record.deviation[CHEAT] == 1.0 and record.delivered[CHEAT]


def test_reputation_removes_for_good(data):
    entry = Adversary(behaviour="zero_update", devices=(CHEAT,), last_round=4)
    use, often = ("validation", "reputation"), ("defences.reputation_memory=0.5",)
    seen = rounds(data, use, entry, count=5, overrides=often)
    taking_part = [record.participating[CHEAT] for _, record in seen]
    assert taking_part == [True, True, False, False, False]  # 1, 0.5, 0.25
    copies = [np.asarray(state.received[0]["weight"][CHEAT]) for state, _ in seen]
    assert np.array_equal(copies[2], copies[4]) and not np.array_equal(copies[0], copies[1])
    assert all(record.participating[np.arange(DEVICES) != CHEAT].all() for _, record in seen)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (['defences.use=["watermrak"]'], "did you mean 'watermark'"),
        (['defences.use=["watermark", "watermark"]'], "twice"),
        (["defences.watermark_threshold=2"], "out of range"),
    ],
)
def test_wrong_settings_are_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        Order(fairwave.load_scenario("small", overrides))


def test_judging_by_others_has_no_proof_in_device_mode():
    change = ["privacy.mode=device", "privacy.max_epsilon=unset", "privacy.noise_multiplier=1"]
    with pytest.raises(ScenarioError, match=r"defences.use: 'validation' judges"):
        Order(fairwave.load_scenario("fair", change), ("max_power",))
    Order(fairwave.load_scenario("fair", [*change, "defences.use=[]"]), ("max_power",))


def test_the_documentation_names_every_defence():
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in defences.ALL)
