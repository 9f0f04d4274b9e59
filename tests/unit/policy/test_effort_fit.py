"""Effort fits against scipy, which knows nothing of how they are computed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from fairwave.policy.effort import effort_model, expected_deviation
from fairwave.policy.effort_fit import EffortMemory, Strategy, fit_effort, no_memory

FIRST = effort_model(jnp.asarray(0.1), jnp.asarray(1.0))


def observe(
    strategy: Strategy, memory: EffortMemory, energy_j: float, deviation: float, *, observed: bool = True
) -> EffortMemory:
    return fit_effort(
        strategy, memory, jnp.asarray(energy_j), jnp.asarray(deviation), observed=jnp.asarray(observed), ridge=0.01
    )


@pytest.mark.parametrize("energy_j", [0.0, 0.001, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("deviation", [1e-4, 0.05, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("strategy", ["paper", "prior"])
def test_the_newest_pair_is_explained_exactly(strategy, energy_j, deviation):
    memory = observe(strategy, no_memory(FIRST, 4), energy_j, deviation)
    assert float(expected_deviation(memory.effort, jnp.asarray(energy_j))) == pytest.approx(deviation, rel=1e-9)
    if strategy == "prior":
        assert float(memory.effort.decay_j) == 1.0


@pytest.mark.parametrize("last", [(0.1, 1.0), (0.5, 0.2), (1.0, 0.02), (0.02, 0.05), (0.0015, 0.001), (0.009, 0.0043)])
@pytest.mark.parametrize(
    ("energy_j", "deviation"), [(0.05, 0.3), (0.05, 0.01), (0.3, 0.9), (0.01, 0.05), (0.9, 0.011), (0.04, 0.26)]
)
def test_paper_fit_changes_least(last, energy_j, deviation):
    """No point of a fine scan over all decays explains the pair with a smaller change."""
    start = effort_model(jnp.asarray(last[0]), jnp.asarray(last[1]))
    effort = observe("paper", no_memory(start, 4), energy_j, deviation).effort
    ours = np.hypot(float(effort.scale) - last[0], float(effort.decay_j) - last[1])
    decay = np.geomspace(min(energy_j / 40, last[1]), 1e3, 2_000_001)
    with np.errstate(over="ignore"):
        change = np.hypot(deviation * np.exp(energy_j / decay) - last[0], decay - last[1])
    assert ours <= change.min() * (1 + 1e-6) + 1e-9


def test_window_fit_is_the_ridge_least_squares_optimum():
    energy = np.array([0.01, 0.02, 0.035, 0.05, 0.06, 0.07])
    deviation = 0.9 * np.exp(-energy / 0.03) + 0.01 * np.cos(40 * energy)
    memory = no_memory(FIRST, 6)
    for pair in zip(energy, deviation, strict=True):
        memory = observe("window", memory, *pair)

    def residuals(p):
        fit = deviation - p[0] * np.exp(-energy / np.exp(p[1]))
        return np.concatenate([fit, 0.1 * np.array([p[0] - 0.1, p[1]])])

    starts = [(a, b) for a in (0.05, 0.5, 1.5) for b in (-5.0, -3.0, -1.0, 1.0)]
    best = min((optimize.least_squares(residuals, s, xtol=1e-14, ftol=1e-14) for s in starts), key=lambda r: r.cost)
    ours = residuals([float(memory.effort.scale), np.log(float(memory.effort.decay_j))])
    assert 0.5 * float(ours @ ours) <= best.cost * (1 + 1e-8)


def test_window_forgets_old_pairs_and_ignores_unused_slots():
    memory = observe("window", no_memory(FIRST, 3), 0.05, 0.4)
    assert int(memory.num_pairs) == 1
    for deviation in (0.1, 0.2, 0.3, 0.4):
        memory = observe("window", memory, 0.05, deviation)
    assert int(memory.num_pairs) == 3
    assert memory.deviation.tolist() == [0.4, 0.3, 0.2]


@pytest.mark.parametrize("strategy", ["paper", "prior"])
def test_no_deviation_promises_nothing(strategy):
    effort = observe(strategy, no_memory(FIRST, 4), 0.05, 0.0).effort
    assert float(effort.scale) == 0.0
    assert float(effort.decay_j) > 0.0
    recovered = observe(strategy, observe(strategy, no_memory(FIRST, 4), 0.05, 0.0), 0.05, 0.2).effort
    assert float(expected_deviation(recovered, jnp.asarray(0.05))) == pytest.approx(0.2)


@pytest.mark.parametrize("strategy", ["paper", "prior", "window"])
def test_a_round_without_the_device_changes_nothing(strategy):
    memory = observe(strategy, no_memory(FIRST, 4), 0.05, 0.3)
    absent = observe(strategy, memory, 9.0, 0.9, observed=False)
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), memory, absent)))


@pytest.mark.parametrize("strategy", ["paper", "prior", "window"])
def test_many_rounds_stay_positive_and_finite(strategy):
    draw = np.random.default_rng(5)
    step = jax.jit(lambda m, x, y: fit_effort(strategy, m, x, y, observed=jnp.asarray(True), ridge=0.01))
    memory = no_memory(FIRST, 5)
    for _ in range(200):
        memory = step(memory, jnp.asarray(draw.uniform(0.0, 0.06)), jnp.asarray(draw.choice([0.0, draw.uniform()])))
        assert 0.0 <= float(memory.effort.scale) < 1e6
        assert 0.0 < float(memory.effort.decay_j) < 1e6
