"""Effort models beyond what a double can hold: fits stay finite, and plans are still the best.

A device that works for 800 times beta2 and still deviates infers beta1 = e^800. The judge of plans is exhaustive search
in NumPy's long double, whose exponents reach further.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairwave.policy.device_plan import Case
from fairwave.policy.effort import (
    LARGEST_EXPONENT,
    LOG_OF_ZERO,
    Effort,
    effort_model,
    expected_deviation,
    marginal_gain,
)
from fairwave.policy.effort_fit import EffortMemory, Strategy, fit_effort, no_memory
from fairwave.policy.rules.proposed import maximise_utility
from tests.oracles import brute_force
from tests.oracles.devices import random_devices
from tests.oracles.fleet import fleet_of, plans_of

STRATEGIES: tuple[Strategy, ...] = ("paper", "prior", "window")
HIGHEST_EXPONENT = 8000.0
"""Largest E / beta2 that the judge can follow: long doubles end at e^11356."""


@eqx.filter_jit
def observed(strategy: Strategy, memory: EffortMemory, energy_j: float, deviation: float) -> EffortMemory:
    return fit_effort(
        strategy, memory, jnp.asarray(energy_j), jnp.asarray(deviation), observed=jnp.asarray(True), ridge=0.01
    )


decades = st.floats(-150.0, 150.0)
deviations = st.one_of(st.just(0.0), st.just(1.0), st.floats(-320.0, 0.0).map(lambda power: 10.0**power))


@given(
    ratio=decades, decay=st.floats(-150.0, 9.0), scale=st.floats(-12.0, 12.0), pair=st.tuples(deviations, deviations)
)
@example(ratio=np.log10(800.0), decay=0.0, scale=-1.0, pair=(0.5, 0.0))
@example(ratio=150.0, decay=-150.0, scale=12.0, pair=(1.0, 1e-320))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_is_finite_over_300_decades(
    strategy: Strategy, ratio: float, decay: float, scale: float, pair: tuple[float, float]
) -> None:
    decay_j, energy_j = 10.0**decay, 10.0 ** min(decay + ratio, 9.0)
    memory = no_memory(effort_model(jnp.asarray(10.0**scale), jnp.asarray(decay_j)), 4)
    for deviation in pair:
        memory = observed(strategy, memory, jnp.asarray(energy_j), jnp.asarray(deviation))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(memory)), memory
        effort = memory.effort
        assert float(effort.decay_j) > 0.0
        for spent_j in (0.0, 1e-9 * energy_j, energy_j, 1e9):
            assert np.isfinite(float(expected_deviation(effort, jnp.asarray(spent_j))))
            assert np.isfinite(float(marginal_gain(effort, jnp.asarray(spent_j))))
        if strategy == "window":
            continue
        if deviation < np.finfo(float).tiny:
            assert float(effort.log_scale) < 0.5 * LOG_OF_ZERO and float(effort.scale) == 0.0
        else:
            exponent = min(energy_j / float(effort.decay_j), LARGEST_EXPONENT)
            explained = float(effort.log_scale) - exponent
            assert explained == pytest.approx(np.log(deviation), rel=1e-9, abs=1e-9 + 4e-16 * exponent)


def test_a_large_exponent_is_fitted_as_its_logarithm() -> None:
    """The case that used to overflow: 800 J against a beta2 of 1 J."""
    memory = no_memory(effort_model(jnp.asarray(0.1), jnp.asarray(1.0)), 4)
    effort = observed("prior", memory, jnp.asarray(800.0), jnp.asarray(0.5)).effort
    assert float(effort.log_scale) == pytest.approx(800.0 + np.log(0.5))
    assert float(expected_deviation(effort, jnp.asarray(800.0))) == pytest.approx(0.5)


def hard_workers(count: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Devices, and log beta1 as the fit `prior` learns it from a round that took part of the deadline."""
    devices, draw = random_devices(count, seed), np.random.default_rng(seed)
    whole_j = devices["compute_power_w"] * devices["deadline_s"]
    devices["effort_decay_j"] = whole_j / np.exp(draw.uniform(np.log(700.0), np.log(HIGHEST_EXPONENT), count))
    spent_j = whole_j * draw.uniform(0.1, 1.0, count)
    log_scale = np.log(draw.uniform(0.01, 1.0, count)) + spent_j / devices["effort_decay_j"]
    return devices, log_scale


def test_plans_with_such_beliefs_are_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    devices, log_scale = hard_workers(2_000, seed=31)
    fleet = fleet_of(devices)
    beliefs = Effort(log_scale=jnp.asarray(log_scale), decay_j=fleet.effort.decay_j)
    plan = plans_of(maximise_utility, eqx.tree_at(lambda f: f.effort, fleet, beliefs))
    sent = np.asarray(plan.case) != Case.OUTAGE
    judged = {name: value[sent].astype(np.longdouble) for name, value in devices.items()}
    judged["effort_scale"] = np.exp(log_scale[sent].astype(np.longdouble))
    iterations = np.asarray(plan.optimal_iterations, np.longdouble)[sent]
    log_snr = np.log1p(np.asarray(plan.transmit_power_w, np.longdouble)[sent] * judged["gain"])
    ours = _worth(judged, iterations, log_snr)
    monkeypatch.setattr(brute_force, "utility", _worth)
    found = brute_force.best_utility(judged, points=48)
    # The expected deviation turns a rounding error of the exponent, at most 8,000 times 1e-15, into a relative one.
    size = np.abs(ours) + judged["energy_reference_j"] ** 2
    assert float(((found - ours) / size).max()) < 1e-9
    assert np.bincount(np.asarray(plan.case)[sent], minlength=len(Case))[1:].min() >= 5


def _worth(d: dict[str, np.ndarray], iterations: np.ndarray, log_snr: np.ndarray) -> np.ndarray:
    """Utility without the constant beta1, against which everything else would vanish."""
    d = {name: value.reshape(value.shape + (1,) * (iterations.ndim - 1)) for name, value in d.items()}
    compute_j = iterations * d["bits_per_iteration"] * d["seconds_per_bit"] * d["compute_power_w"]
    power_w = np.expm1(log_snr) / d["gain"]
    upload_s = d["payload_bits"] * np.log(2.0) / (d["bandwidth_hz"] * log_snr)
    energy_j = compute_j + upload_s * (power_w / d["amplifier_efficiency"] + d["circuit_power_w"])
    left = -d["effort_scale"] * np.exp(-compute_j / d["effort_decay_j"])
    return left - energy_j**2 + d["energy_reference_j"] * energy_j
