"""Similarity, deviation and noise levels, by hand and against a plain NumPy loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.policy.contribution import no_score, remember, similarity
from fairwave.policy.deviation import (
    deviation_factor,
    fair_levels,
    fair_noise_multiplier,
    released_copy,
    score_devices,
)
from fairwave.scenario.loading import load_scenario

ALL = jnp.ones(3, bool)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.mark.parametrize("kind", ["literal", "update", "leave_one_out"])
@pytest.mark.parametrize("absent", [None, 1])
def test_similarity_against_a_plain_loop(kind, absent):
    draw = np.random.default_rng(2)
    updates, model = draw.normal(size=(5, 40)), draw.normal(size=40)
    present = np.arange(5) != absent
    others = {k: [i for i in range(5) if present[i] and i != k] for k in range(5)}
    reference = {
        "literal": lambda k: model,
        "update": lambda k: updates[present].mean(axis=0),
        "leave_one_out": lambda k: updates[others[k]].mean(axis=0),
    }[kind]
    expected = [cosine(updates[k], reference(k)) if present[k] else 0.0 for k in range(5)]
    ours = similarity(kind, jnp.asarray(model), jnp.asarray(updates), jnp.asarray(present))
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["literal", "update", "leave_one_out"])
def test_similarity_of_nothing_is_nothing(kind):
    zero = similarity(kind, jnp.zeros(4), jnp.zeros((3, 4)), ALL)
    assert zero.tolist() == [0.0, 0.0, 0.0]
    lonely = similarity(kind, jnp.ones(4), jnp.ones((1, 4)), jnp.ones(1, bool))
    assert float(lonely[0]) == pytest.approx(0.0 if kind == "leave_one_out" else 1.0)


def test_literal_similarity_is_won_by_an_echo_and_leave_one_out_is_not():
    """A device that returns the model it received beats honest, nearly orthogonal updates under the printed rule."""
    draw = np.random.default_rng(3)
    model, common = draw.normal(size=500), draw.normal(size=500)
    honest = 0.05 * (common + 0.3 * draw.normal(size=(4, 500)))
    updates = jnp.asarray(np.vstack([honest, 0.05 * model]))
    present = jnp.ones(5, bool)
    fooled = deviation_factor(similarity("literal", jnp.asarray(model), updates, present), present, jnp.zeros(5))
    sound = deviation_factor(similarity("leave_one_out", jnp.asarray(model), updates, present), present, jnp.zeros(5))
    assert float(fooled[4]) == 0.0 and (np.asarray(fooled)[:4] > 0.7).all()
    assert float(sound[4]) > 0.7 and (np.asarray(sound)[:4] < 0.2).all()


def test_deviation_by_hand():
    scores = jnp.array([0.8, 0.4, -0.2])
    np.testing.assert_allclose(deviation_factor(scores, ALL, jnp.zeros(3)), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [-0.5, -0.1, -0.9], [1e-7, 0.0, -1.0]])
def test_if_nobody_agrees_all_deviate(scores):
    assert deviation_factor(jnp.array(scores), ALL, jnp.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_absent_devices_keep_their_deviation_and_set_no_yardstick():
    present = jnp.array([True, True, False])
    out = deviation_factor(jnp.array([0.2, 0.1, 0.9]), present, jnp.array([0.3, 0.3, 0.7]))
    np.testing.assert_allclose(out, [0.0, 0.5, 0.7])


def test_noise_levels_of_the_paper():
    """sqrt(2 ln(1.25e5)) / 0.95 = 5.09980, and 1 / (1 - 0.6) = 2.5 times that for full deviation."""
    noise = fair_noise_multiplier(jnp.array([0.0, 0.5, 1.0]), epsilon=0.95, delta=1e-5, deviation_weight=0.6)
    np.testing.assert_allclose(noise, [5.09980, 7.28543, 12.74950], rtol=2e-6)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=8),
    st.floats(0, 0.99),
    st.floats(0.05, 0.99),
)
def test_more_agreement_never_means_more_noise(scores, weight, epsilon):
    present = jnp.ones(len(scores), bool)
    deviation = deviation_factor(jnp.array(scores), present, jnp.zeros(len(scores)))
    noise = np.asarray(fair_noise_multiplier(deviation, epsilon=epsilon, delta=1e-5, deviation_weight=weight))
    assert ((np.asarray(deviation) >= 0) & (np.asarray(deviation) <= 1)).all()
    assert np.isfinite(noise).all() and (noise > 0).all()
    order = np.argsort(scores)
    assert (np.diff(noise[order]) <= 1e-9 * noise.max()).all()


def test_copies_carry_their_noise():
    model, draws = jnp.array([1.0, -2.0]), jnp.array([[1.0, 1.0], [-1.0, 2.0]])
    copies = released_copy(model, jnp.array([0.5, 2.0]), draws)
    np.testing.assert_allclose(copies, [[1.5, -1.5], [-1.0, 2.0]])


def test_memory_averages_and_absence_pauses_it():
    score = remember(no_score(2), jnp.array([0.8, 0.6]), jnp.array([True, False]), 0.75)
    assert score.similarity.tolist() == pytest.approx([0.8, 0.0])
    score = remember(score, jnp.array([0.4, 0.6]), jnp.array([True, True]), 0.75)
    assert score.similarity.tolist() == pytest.approx([0.6, 0.6])  # the first are averaged evenly
    for _ in range(3):
        score = remember(score, jnp.array([0.6, 0.6]), jnp.array([True, True]), 0.75)
    later = remember(score, jnp.array([0.2, 0.6]), jnp.array([True, True]), 0.75)
    assert later.similarity.tolist() == pytest.approx([0.5, 0.6])  # 0.75 of the old, not 5/6
    paused = remember(score, jnp.array([0.0, 0.0]), jnp.array([False, False]), 0.75)
    assert paused.similarity.tolist() == score.similarity.tolist()


def test_scores_put_the_parts_together():
    privacy = load_scenario("fair-mlp").privacy.model_copy(update={"calibration": "classical"})
    draw = np.random.default_rng(4)
    common = draw.normal(size=30)
    updates = jnp.asarray(np.vstack([common, common, -common]) + 0.1 * draw.normal(size=(3, 30)))
    scored = score_devices(
        privacy,
        jnp.zeros(30),
        updates,
        participating=ALL,
        last_deviation=jnp.zeros(3),
        last_score=no_score(3),
    )
    assert float(scored.deviation[2]) == 1.0
    base = privacy.sensitivity * 5.09980
    assert float(fair_levels(privacy, scored.deviation)[2]) == pytest.approx(base / 0.4, rel=1e-5)
    assert (scored.score.rounds == 1).all()


@pytest.mark.parametrize("length", [1e2, 1e4, 1e5])
def test_leave_one_out_survives_a_long_update_in_single_precision(length):
    draw = np.random.default_rng(6)
    common = draw.normal(size=20_000)
    updates = (0.5 * common + draw.normal(size=(10, 20_000))) * np.where(np.arange(10) == 0, length, 1.0)[:, None]
    expected = cosine(updates[0], updates[1:].mean(axis=0))
    ours = similarity(
        "leave_one_out", jnp.zeros(20_000, jnp.float32), jnp.asarray(updates, jnp.float32), jnp.ones(10, bool)
    )
    assert float(ours[0]) == pytest.approx(expected, abs=0.01)
