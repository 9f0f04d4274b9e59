"""Peers' rules against steps worked by hand, in plain NumPy from their papers."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from fairwave.extensions import SCHEMES
from fairwave.policy.performance_fairness import agnostic_weights, on_simplex, q_fair_step, tilted_weights
from fairwave.policy.rewards import largest_part, others_drawn, reward_rates
from fairwave.policy.updates import Updates
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import SchemeSettings, ServerStep
from tests.builders import updates_of

UPDATES = np.array([[3.0, 4.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]])
LOSSES = np.array([2.0, 1.0, 0.5])
ALL = np.ones(3, bool)
KEY = jax.random.key(0)


def arrived(used=ALL, updates=UPDATES, accuracy=(0.9, 0.6, 0.3), held=(100.0, 50.0, 10.0)) -> Updates:
    rows = np.where(np.asarray(used)[:, None], updates, 0.0)
    reported = {"reported_loss": LOSSES, "accuracy": accuracy, "num_samples": held}
    return updates_of(rows, np.asarray(used), **{name: jnp.asarray(value) for name, value in reported.items()})


def settings_of(**changes) -> SchemeSettings:
    return SchemeSettings(Peers(**changes), learning_rate=0.1)


def started(scheme, settings=None) -> object:
    return scheme.start(settings or settings_of(), 3, jnp.zeros(3))


def after_step(step, copies=None) -> ServerStep:
    held = jnp.zeros((3, 3)) if copies is None else copies
    return ServerStep(step=step, model=jnp.asarray(step) + 7.0, copies=held)


def test_q_fedavg_is_algorithm_2():
    """Li et al. 2020 as printed: w - sum(Delta) / sum(h), with L = 1 / learning rate."""
    q, smooth, w = 2.0, 10.0, np.array([1.0, 1.0, 1.0])
    trained = w + UPDATES
    gradients = smooth * (w - trained)
    deltas = (LOSSES**q)[:, None] * gradients
    bends = q * LOSSES ** (q - 1) * (gradients**2).sum(axis=1) + smooth * LOSSES**q
    expected = w - deltas.sum(axis=0) / bends.sum()
    step, _ = SCHEMES["q_fedavg"].combine(settings_of(q_fedavg_power=q), arrived(), ())
    np.testing.assert_allclose(w + step, expected, rtol=1e-6)
    np.testing.assert_allclose(q_fair_step(UPDATES, LOSSES, ALL, 0.0, 10.0), UPDATES.mean(axis=0), rtol=1e-6)
    assert (q_fair_step(UPDATES, LOSSES, ~ALL, 1.0, 10.0) == 0).all()


def test_fedavgm_by_hand():
    """Hsu et al. 2019: the momentum is 0.5 of the last plus the mean; the step is it times the rate."""
    scheme, settings = SCHEMES["fedavgm"], settings_of(server_momentum=0.5, server_rate=2.0)
    mean = UPDATES.mean(axis=0)
    step, memory = scheme.combine(settings, arrived(), started(scheme, settings))
    np.testing.assert_allclose(step, 2.0 * mean, rtol=1e-6)
    only_the_first = np.array([True, False, False])
    step, memory = scheme.combine(settings, arrived(only_the_first), memory)
    np.testing.assert_allclose(step, 2.0 * (0.5 * mean + UPDATES[0]), rtol=1e-6)
    np.testing.assert_allclose(memory, 0.5 * mean + UPDATES[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("fedadam", lambda last, mean: 0.75 * last + 0.25 * mean**2),
        ("fedyogi", lambda last, mean: last - 0.25 * mean**2 * np.sign(last - mean**2)),
        ("fedadagrad", lambda last, mean: last + mean**2),
    ],
)
def test_adaptive_servers_by_hand(name, second):
    """Reddi et al. 2021, Algorithm 2, over two rounds; FedAdagrad has no momentum, and moments begin at 0 and tau^2."""
    chosen = {"server_momentum": 0.5, "second_moment_decay": 0.75, "adaptive_rate": 2.0, "adaptive_tau": 0.5}
    scheme, settings = SCHEMES[name], settings_of(**chosen)
    kept = 0.0 if name == "fedadagrad" else 0.5
    first_moment, second_moment, memory = np.zeros(3), np.full(3, 0.25), started(scheme, settings)
    for used in (ALL, np.array([False, True, True])):
        mean = UPDATES[used].mean(axis=0)
        first_moment, second_moment = kept * first_moment + (1.0 - kept) * mean, second(second_moment, mean)
        step, memory = scheme.combine(settings, arrived(used), memory)
        np.testing.assert_allclose(step, 2.0 * first_moment / (np.sqrt(second_moment) + 0.5), rtol=1e-6)
    step, after = scheme.combine(settings, arrived(~ALL), memory)
    assert (step == 0.0).all()
    for ours, theirs in zip(*map(jax.tree.leaves, (after, memory)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_afl_projects_onto_the_simplex():
    rng = np.random.default_rng(0)
    for point in rng.normal(size=(20, 4)):
        found = minimize(
            lambda x, at=point: ((x - at) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            method="SLSQP",
            tol=1e-14,
        )
        np.testing.assert_allclose(on_simplex(jnp.asarray(point)), found.x, atol=1e-5)
    scheme = SCHEMES["afl"]
    step, weights = scheme.combine(settings_of(afl_rate=0.3), arrived(), started(scheme))
    np.testing.assert_allclose(step, UPDATES.mean(axis=0), rtol=1e-6)  # the weights of the round before
    # (1/3 + 0.6, 1/3 + 0.3, 1/3 + 0.15) less a third of what is over 1, which is 1.05
    np.testing.assert_allclose(weights, np.array([0.6, 0.3, 0.15]) + 1 / 3 - 0.35, rtol=1e-6)
    absent = agnostic_weights(jnp.full(3, 1 / 3), jnp.asarray(LOSSES), jnp.array([False, True, True]), 0.3)
    assert absent[0] < 1 / 3 < absent[1]


def test_term_tilts_by_the_loss():
    expected = np.exp(1.5 * LOSSES) / np.exp(1.5 * LOSSES).sum()
    np.testing.assert_allclose(tilted_weights(LOSSES, ALL, 1.5), expected, rtol=1e-6)
    np.testing.assert_allclose(tilted_weights(LOSSES, np.array([False, True, True]), 0.0), [0, 0.5, 0.5], rtol=1e-6)
    assert tilted_weights(LOSSES * 1e4, ALL, 1.0).tolist() == [1, 0, 0]
    step, _ = SCHEMES["term"].combine(settings_of(term_tilt=1.5), arrived(), ())
    np.testing.assert_allclose(step, expected @ UPDATES, rtol=1e-6)


def test_cgsv_by_hand():
    """Xu et al. 2021: scaled updates, last reputations as weights, cosine, moving average, tanh quota, top values."""
    scheme, settings = SCHEMES["cgsv"], settings_of(update_length=0.5, reputation_memory=0.95, altruism=2.0)
    scaled = 0.5 * UPDATES / np.linalg.norm(UPDATES, axis=1)[:, None]
    first = scaled.mean(axis=0)
    step, reputation = scheme.combine(settings, arrived(), started(scheme))
    np.testing.assert_allclose(step, first, rtol=1e-5)
    cosine = scaled @ first / np.linalg.norm(scaled, axis=1) / np.linalg.norm(first)
    moved = np.maximum(0.05 * cosine, 1e-3)
    np.testing.assert_allclose(reputation, moved / moved.sum(), rtol=1e-5)
    second, later = scheme.combine(settings, arrived(), reputation)
    np.testing.assert_allclose(second, np.asarray(reputation) @ scaled, rtol=1e-5)
    quota = np.tanh(2.0 * np.asarray(later)) / np.tanh(2.0 * np.asarray(later)).max()
    given = np.asarray(scheme.reward(settings, arrived(), after_step(second, jnp.ones((3, 3))), later, KEY)) - 1.0
    order = np.argsort(-np.abs(np.asarray(second)))
    for device in range(3):
        kept = order[: int(np.ceil(quota[device] * 3))]
        np.testing.assert_allclose(given[device], np.where(np.isin(range(3), kept), second, 0.0), rtol=1e-5)


def test_rffl_keeps_own_work_and_removes_the_least_reputed():
    """Xu and Lyu 2021: clipped updates, quota linear in reputation, nobody removed before the tenth round."""
    scheme, settings = SCHEMES["rffl"], settings_of(update_length=2.5)
    clipped = UPDATES * np.minimum(1.0, 2.5 / np.linalg.norm(UPDATES, axis=1))[:, None]
    memory = started(scheme)
    step, memory = scheme.combine(settings, arrived(), memory)
    np.testing.assert_allclose(step, clipped.mean(axis=0), rtol=1e-5)
    given = scheme.reward(settings, arrived(), after_step(step), memory, KEY)
    best = int(np.argmax(memory[0]))
    np.testing.assert_allclose(given[best], clipped[best] + np.asarray(step), rtol=1e-5)
    for number in range(1, 12):
        assert bool(memory[1].all()) == (number <= 10)
        step, memory = scheme.combine(settings, arrived(), memory)
    assert memory[1].tolist() == [True, True, False] and float(memory[0][2]) == 0.0
    np.testing.assert_allclose(
        scheme.reward(settings, arrived(), after_step(step), memory, KEY)[2], clipped[2], rtol=1e-5
    )


def test_cffl_credits_by_hand():
    """Lyu et al. 2020: accuracy shares, 0.2 old and 0.8 new, hyperbolic sine, a third of an even share to stay."""
    scheme, settings = SCHEMES["cffl"], settings_of(cffl_punishment=5.0)
    sent = arrived(accuracy=(0.9, 0.6, 0.05))
    step, (credit, member) = scheme.combine(settings, sent, started(scheme))
    raw = np.sinh(5.0 * (0.2 / 3 + 0.8 * np.array([0.9, 0.6, 0.05]) / 1.55))
    shared = raw / raw.sum()
    stays = shared >= 1 / 9
    assert member.tolist() == stays.tolist() and stays.sum() < 3
    np.testing.assert_allclose(credit, np.where(stays, shared, 0) / shared[stays].sum(), rtol=1e-5)
    np.testing.assert_allclose(step, UPDATES[stays].mean(axis=0), rtol=1e-6)
    given = np.asarray(scheme.reward(settings, arrived(), after_step(step), (credit, member), KEY))
    best = int(np.argmax(credit))
    np.testing.assert_allclose(given[best], UPDATES[best] + np.asarray(step) - UPDATES[best] / stays.sum(), rtol=1e-5)
    out = int(np.flatnonzero(~stays)[0])
    np.testing.assert_allclose(given[out], UPDATES[out], rtol=1e-6)  # what it trained, and nothing else


def test_iafl_draws_as_many_others_as_the_data_earns():
    """Wu et al. 2024: ceil(rate * others) of the others and itself, averaged."""
    np.testing.assert_allclose(reward_rates(jnp.array([100.0, 50.0, 10.0]), 0.0), [1, 0.5, 0.1])
    np.testing.assert_allclose(reward_rates(jnp.array([100.0, 50.0, 10.0]), 1.0), 1.0)
    seen = set()
    for number in range(60):
        weights = np.asarray(others_drawn(jax.random.key(number), jnp.asarray(ALL), jnp.array([1.0, 0.5, 0.1])))
        np.testing.assert_allclose(weights[0], 1 / 3, rtol=1e-6)
        for row, (own, count) in zip(weights[1:], ((1, 1), (2, 1)), strict=True):
            assert row[own] == pytest.approx(0.5) and (row > 0).sum() == 1 + count
        seen.add(tuple(np.flatnonzero(weights[1])))
    assert seen == {(0, 1), (1, 2)}
    scheme, settings = SCHEMES["iafl"], settings_of(iafl_recovery=1.0)
    step, _ = scheme.combine(settings, arrived(), ())
    np.testing.assert_allclose(step, UPDATES.mean(axis=0), rtol=1e-6)
    given = scheme.reward(settings, arrived(), after_step(step), (), KEY)
    np.testing.assert_allclose(given, np.broadcast_to(np.asarray(step) + 7.0, (3, 3)), rtol=1e-6)
    absent = np.asarray(others_drawn(KEY, jnp.array([True, False, True]), jnp.ones(3)))
    assert (absent[:, 1] == 0).all() and absent[1].sum() == pytest.approx(1.0)


def test_the_largest_part_is_a_top_k():
    step = jnp.array([0.1, -3.0, 2.0, 0.0, -0.5])
    given = np.asarray(largest_part(step, jnp.array([0.0, 0.2, 0.21, 1.0])))
    assert [np.count_nonzero(row) for row in given] == [0, 1, 2, 4]  # the fifth value is zero
    np.testing.assert_array_equal(given[2], [0, -3, 2, 0, 0])


def test_with_equal_losses_and_full_rewards_all_are_the_plain_mean():
    level = updates_of(UPDATES, reported_loss=jnp.ones(3), accuracy=jnp.full(3, 0.5), num_samples=jnp.ones(3))
    for name, changes in itertools.product(("term", "afl", "iafl"), ({},)):
        scheme = SCHEMES[name]
        step, _ = scheme.combine(settings_of(**changes), level, started(scheme))
        np.testing.assert_allclose(step, UPDATES.mean(axis=0), rtol=1e-6)
