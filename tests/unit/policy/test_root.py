from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from fairwave.policy.cheapest import balanced_log_snr
from fairwave.policy.problem import DeviceProblem
from fairwave.policy.root import sign_change, where_needed
from tests.oracles.devices import random_devices
from tests.oracles.fleet import fleet_of

FUNCTIONS = [
    (lambda x, m=jnp: m.exp(x) - 5.0, -3.0, 9.0),
    (lambda x, m=jnp: x**3 - 1e-6, -1.0, 1.0),
    (lambda x, m=jnp: m.tanh(50 * (x - 0.3)), -4.0, 4.0),
    (lambda x, m=jnp: m.arctan(1e6 * (x - 1e-3)), -1e3, 1e3),
    (lambda x, m=jnp: m.where(x < 0.7, -1.0, 2.0) + 0.0 * x, 0.0, 1.0),
    (lambda x, m=jnp: m.sign(x - 0.2) * m.abs(x - 0.2) ** 0.25, -1.0, 1.0),
    (lambda x, m=jnp: m.exp(2 * x) * (x - 1) - 1e12, 0.0, 40.0),
]


@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
@pytest.mark.parametrize("backwards", [False, True])
def test_agrees_with_brentq(index: int, backwards: bool):
    function, low, high = FUNCTIONS[index]
    sign = -1.0 if backwards else 1.0
    low, high = (high, low) if backwards else (low, high)
    ours = float(sign_change(lambda x: sign * function(x), jnp.asarray(low), jnp.asarray(high)))
    theirs = optimize.brentq(lambda x: float(function(x, np)), *sorted((low, high)), xtol=1e-15, rtol=1e-14)
    assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-13)


def test_ends_are_answers_too():
    def rising(x):
        return x - 2.0

    assert float(sign_change(rising, jnp.asarray(3.0), jnp.asarray(5.0))) == 3.0
    assert float(sign_change(rising, jnp.asarray(0.0), jnp.asarray(1.0))) == 1.0
    assert float(sign_change(rising, jnp.asarray(2.0), jnp.asarray(1e9))) == 2.0


def test_undefined_values_end_the_search():
    assert np.isfinite(float(sign_change(lambda x: x * jnp.nan, jnp.asarray(1.0), jnp.asarray(2.0))))


def test_lanes_are_independent():
    targets = jnp.geomspace(1e-3, 1e6, 500)
    roots = jax.jit(jax.vmap(lambda t: sign_change(lambda x: jnp.exp(x) - t, jnp.asarray(-50.0), jnp.asarray(50.0))))(
        targets
    )
    np.testing.assert_allclose(roots, np.log(targets), rtol=1e-10, atol=1e-12)


def test_where_needed_computes_only_for_those_in_need():
    chosen = jax.vmap(lambda need, x: where_needed(need, lambda v: 10 * v, x, x))(
        jnp.array([True, False, True]), jnp.array([1.0, 2.0, 3.0])
    )
    assert chosen.tolist() == [10.0, 2.0, 30.0]


def test_where_needed_is_skipped_when_nobody_needs_it():
    """The compiled program keeps the work inside the loop: XLA has not moved it out."""

    def lane(need, x):
        return where_needed(need, jnp.cosh, x, x)

    compiled = jax.jit(jax.vmap(lane)).lower(jnp.zeros(8, bool), jnp.ones(8)).compile().as_text()
    entry = compiled[compiled.index("ENTRY") :]
    assert "while" in entry
    assert "cosh" in compiled or "exponential" in compiled
    assert "cosh" not in entry and "exponential" not in entry


@pytest.mark.parametrize("target", np.geomspace(1e-5, 1e20, 26))
def test_balanced_log_snr_is_the_lambert_function(target: float):
    fleet = fleet_of(random_devices(1, seed=0))
    device = jax.tree.map(lambda leaf: leaf[0], fleet.device)
    zero = jnp.zeros(())
    problem = DeviceProblem(
        device=device,
        gain=target / device.amplifier_efficiency,
        min_log_snr=zero,
        max_log_snr=zero,
        most_iterations=zero,
        slowest_at_most=zero,
    )
    expected = 1.0 + float(special.lambertw((target - 1.0) / np.e).real)
    assert float(balanced_log_snr(problem, jnp.ones(()))) == pytest.approx(expected, rel=1e-8)
    assert float(balanced_log_snr(problem, -jnp.ones(()))) == 0.0
