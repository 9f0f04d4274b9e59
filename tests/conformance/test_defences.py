"""What every defence in the registry must do, and what each of them does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.defences.defence import PAST, Verdict, sketches
from fairwave.engine.server_steps import NOT_FINITE, ServerRules, judge
from fairwave.errors import ScenarioError
from fairwave.extensions import BEHAVIOURS, DEFENCES, SCHEMES
from fairwave.policy.updates import Updates
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import SchemeSettings
from tests.builders import clusters_cell, knowledge_of, rounds_of, updates_of

DEVICES, CHEAT, SIZE = 5, 3, 400
OTHERS = np.arange(DEVICES) != CHEAT
PAST_UPDATES = np.random.default_rng(8).normal(size=(PAST, DEVICES, SIZE))
EVERYTHING = tuple(DEFENCES.builtin_names())


def honest_updates(**changes) -> Updates:
    """Honest devices: a common direction, and something of their own."""
    draw = np.random.default_rng(5)
    noise, change = draw.normal(size=(PAST, DEVICES, SIZE)), draw.normal(size=(DEVICES, SIZE))
    common = draw.normal(size=SIZE)
    rows = common + draw.normal(size=(DEVICES, SIZE))
    known = knowledge_of(draw.normal(size=SIZE), noise, change, jax.vmap(sketches)(jnp.asarray(PAST_UPDATES)))
    return updates_of(rows, **{"gain": jnp.full(DEVICES, 0.1), "knowledge": known, **changes})


def replaced(updates: Updates, row) -> Updates:
    return dataclasses.replace(updates, rows=updates.rows.at[CHEAT].set(row))


def judged(updates: Updates, *use: str) -> tuple[Updates, Verdict]:
    """As the access point judges: what is not finite is refused first, and zero."""
    privacy = fairwave.load_scenario("small").privacy
    rules = ServerRules(SCHEMES["proposed"], privacy, Defences(use=use), SchemeSettings(Peers(), 0.1))
    finite = jnp.all(jnp.isfinite(updates.rows), axis=1)
    rows = jnp.where(finite[:, None], updates.rows, 0.0)
    return judge(rules, dataclasses.replace(updates, rows=rows), finite)


def caught_by(updates: Updates, *use: str) -> dict[str, list[int]]:
    """Who is caught at what."""
    _, verdict = judged(updates, *use)
    found = {name: np.flatnonzero(np.asarray(mask)).tolist() for name, mask in verdict.findings.items()}
    return {name: who for name, who in found.items() if who}


def test_honest_devices_are_left_alone():
    _, verdict = judged(honest_updates(), *EVERYTHING)
    assert not np.asarray(verdict.caught).any() and np.asarray(verdict.credit).min() > 0.9
    plain, verdict = judged(honest_updates())
    np.testing.assert_array_equal(plain.rows, honest_updates().rows)
    np.testing.assert_array_equal(verdict.compared, honest_updates().rows)


@pytest.mark.parametrize("row", [0.0, 1e3, 1e30])
def test_validation_catches_what_cannot_be_honest(row):
    assert caught_by(replaced(honest_updates(), jnp.full(SIZE, row)), "validation") == {"validation": [CHEAT]}


@pytest.mark.parametrize("row", [np.nan, np.inf])
@pytest.mark.parametrize("use", [(), ("validation",), EVERYTHING])
def test_what_is_not_finite_is_refused_under_its_own_name(row, use):
    """It is refused before the first defence, so that nobody is judged by it."""
    assert caught_by(replaced(honest_updates(), jnp.full(SIZE, row)), *use) == {NOT_FINITE: [CHEAT]}


def test_watermark_and_replay_and_held_out():
    updates = honest_updates()
    known = updates.knowledge
    for noise in known.copy_noise[:, CHEAT]:  # an old copy is no better to echo
        for echo in (noise, known.model + noise):
            assert caught_by(replaced(updates, echo), "watermark") == {"watermark": [CHEAT]}
        assert caught_by(replaced(updates, updates.rows[CHEAT] - noise), "watermark") == {}  # training takes it off
    for old in PAST_UPDATES[:, CHEAT]:
        assert caught_by(replaced(updates, 3.0 * jnp.asarray(old)), "replay_check") == {"replay_check": [CHEAT]}
    nothing_yet = dataclasses.replace(known, last_sketches=jnp.zeros_like(known.last_sketches))
    assert caught_by(dataclasses.replace(updates, knowledge=nothing_yet), "replay_check") == {}
    for third in (0.005, jnp.nan):
        useless = honest_updates(gain=jnp.array([0.1, 0.2, 0.1, third, 0.3]))
        assert caught_by(useless, "held_out") == {"held_out": [CHEAT]}
    assert caught_by(honest_updates(gain=jnp.array([-0.1, -0.2, -0.1, 0.1, -0.3])), "held_out") == {}


def test_clipping_projection_and_reported_noise():
    updates = honest_updates()
    known = updates.knowledge
    longer = replaced(updates, 9.0 * updates.rows[CHEAT])
    lengths = np.linalg.norm(judged(longer, "norm_clipping")[0].rows, axis=1)
    before = np.linalg.norm(longer.rows, axis=1)
    most = 2.0 * np.median(before)
    assert lengths[CHEAT] == pytest.approx(most, rel=1e-3) and lengths.max() <= most
    np.testing.assert_allclose(lengths[OTHERS], before[OTHERS], rtol=1e-6)
    echo = replaced(updates, 2.0 * known.model - known.copy_noise[0, CHEAT] + known.copy_change[CHEAT])
    _, verdict = judged(echo, "projection")
    assert verdict.credit[CHEAT] < 1e-6 and np.asarray(verdict.credit)[OTHERS].min() > 0.9
    for rest, own in zip(verdict.compared, known.copy_noise[0], strict=True):
        assert abs(float(rest @ known.model)) < 1e-6 and abs(float(rest @ own)) < 1e-6
    noisy = np.random.default_rng(6).normal(0, 0.3, (DEVICES, 20_000))
    flatterer = updates_of(noisy, reported_noise_std=jnp.array([0.3, 0.3, 0.3, 0.9, 0.1]))
    believed = judged(flatterer, "noise_check")[0].reported_noise_std
    np.testing.assert_allclose(believed, [0.3, 0.3, 0.3, 0.3, 0.1], rtol=0.03)


def test_sketches_keep_cosines():
    one, other = np.random.default_rng(2).normal(size=(2, 1, 50_000))
    mixed = 0.8 * one + 0.6 * other
    true = float((one @ mixed.T / np.linalg.norm(one) / np.linalg.norm(mixed))[0, 0])
    short = [np.asarray(sketches(jnp.asarray(vector)))[0] for vector in (one, mixed, 3.0 * one)]
    near = short[0] @ short[1] / np.linalg.norm(short[0]) / np.linalg.norm(short[1])
    assert near == pytest.approx(true, abs=0.1) and short[2] == pytest.approx(3.0 * short[0])


def test_the_first_that_refuses_is_named_and_others_judge_without_it():
    """The order of action is the defences' own, whatever the order in which a scenario names them."""
    loud = replaced(honest_updates(), 1e3 * honest_updates().knowledge.copy_noise[0, CHEAT])
    for use in (("watermark", "validation", "norm_clipping"), ("norm_clipping", "validation", "watermark")):
        assert caught_by(loud, *use) == {"validation": [CHEAT]}
        assert np.linalg.norm(judged(loud, *use)[0].rows[CHEAT]) == 0.0


def test_those_that_refuse_act_before_those_that_change():
    orders = {name: DEFENCES[name].order for name in EVERYTHING}
    assert len(set(orders.values())) == len(orders)
    assert all((orders[name] < 100) == DEFENCES[name].refuses for name in EVERYTHING)


def rounds(use, *entries: Adversary, count: int = 4, overrides=()) -> list:
    more = (f"defences.use={list(use)}", "privacy.similarity=leave_one_out", "defences.validation_samples=40")
    run = clusters_cell("proposed", *more, *overrides, devices=DEVICES, cheats=entries)
    return [(state, jax.tree.map(np.asarray, record)) for state, record in rounds_of(run, count)]


def test_without_defences_nothing_is_kept():
    state, record = rounds((), count=1)[0]
    assert state.server.device_history is None and not any(mask.any() for mask in record.findings.values())


def test_all_defences_together_run_and_repeat():
    seen, again = (rounds(EVERYTHING, count=3) for _ in range(2))
    for (state, record), (same, _) in zip(seen, again, strict=True):
        assert set(record.findings) == {NOT_FINITE, *(name for name in EVERYTHING if DEFENCES[name].refuses)}
        for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(one, other)
    assert all(DEFENCES[name].summary and DEFENCES[name].name == name for name in EVERYTHING)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYTHING)
def test_every_defence_alone_catches_no_honest_device_and_lets_it_learn(name):
    """Two rounds of honest devices: nobody is refused, every score counts, and the model gets better."""
    seen, plain = rounds((name,), count=2), rounds((), count=2)
    for _, record in seen:
        assert not any(mask.any() for mask in record.findings.values())
        assert record.delivered.all() and (record.deviation < 1.0).all()
    assert seen[-1][1].global_loss < 1.02 * plain[-1][1].global_loss


def test_whoever_is_caught_deviates_fully_and_is_not_used():
    entry = Adversary(behaviour="echo_model", devices=(CHEAT,), first_round=2)
    loud = ("defences.watermark_threshold=0.5", "privacy.sensitivity=0.05")  # so small a model drowns little noise
    watched, honest = rounds(("watermark",), entry, overrides=loud), rounds(("watermark",), overrides=loud)
    for number, (_, record) in enumerate(watched):
        assert record.findings["watermark"][CHEAT] == (number > 0)
        assert number == 0 or record.deviation[CHEAT] == 1.0
    after = [np.asarray(seen[1][0].server.global_params[0]["weight"]) for seen in (watched, honest)]
    gap = np.abs(after[0] - after[1])
    assert gap.max() < 0.1  # the mean of four honest updates instead of five


def test_updates_that_are_not_finite_never_reach_the_model():
    """With or without defences; a behaviour is given as an object here."""
    wild = dataclasses.replace(
        BEHAVIOURS["scaled"], name="not_a_number", replace_update=lambda known: known.honest * jnp.nan
    )
    for state, record in rounds((), Adversary(behaviour=wild, devices=(CHEAT,)), count=2):
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.server.global_params))
        assert record.deviation[CHEAT] == 1.0 and record.delivered[CHEAT]
        assert np.flatnonzero(record.findings[NOT_FINITE]).tolist() == [CHEAT]


def test_reputation_removes_for_good():
    entry = Adversary(behaviour="zero_update", devices=(CHEAT,), last_round=4)
    use, often = ("validation", "reputation"), ("defences.reputation_memory=0.5",)
    seen = rounds(use, entry, count=5, overrides=often)
    taking_part = [record.participating[CHEAT] for _, record in seen]
    assert taking_part == [True, True, False, False, False]  # 1, 0.5, 0.25
    copies = [np.asarray(state.server.copies.of_devices[0]["weight"][CHEAT]) for state, _ in seen]
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
        Order.checked(fairwave.load_scenario("small", overrides))


def test_judging_by_others_has_no_proof_in_device_mode():
    change = ["privacy.mode=device", "privacy.max_epsilon=unset", "privacy.noise_multiplier=1"]
    with pytest.raises(ScenarioError, match=r"defences.use: 'validation' judges"):
        Order.checked(fairwave.load_scenario("fair-mlp", change), ("max_power",))
    Order.checked(fairwave.load_scenario("fair-mlp", [*change, "defences.use=[]"]), ("max_power",))


def test_the_documentation_names_every_defence():
    text = (Path(__file__).parents[2] / "docs" / "adversaries.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in EVERYTHING)
