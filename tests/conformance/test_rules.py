"""What every rule in the registry must do, whatever it wants."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import lambertw

from fairwave.extensions import RULES
from fairwave.policy.device_plan import Case, DevicePlan, plan_round
from tests.oracles import brute_force
from tests.oracles.devices import random_devices
from tests.oracles.fleet import fleet_of, plans_of

NAMES = list(RULES)
COUNT = 4_000


@pytest.fixture(scope="module")
def devices() -> dict[str, np.ndarray]:
    return random_devices(COUNT, seed=30)


@pytest.fixture(scope="module", params=NAMES)
def planned(request, devices) -> tuple[str, DevicePlan]:
    return request.param, plans_of(RULES[request.param], fleet_of(devices))


def test_all_numbers_are_finite(planned):
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(planned[1]))


def test_limits_are_respected(planned):
    assert np.asarray(planned[1].violation).max() <= 1e-9


def test_iterations_are_rounded_down_within_limits(planned, devices):
    plan = planned[1]
    whole, optimal = np.asarray(plan.local_iterations), np.asarray(plan.optimal_iterations)
    sent = np.asarray(plan.case) != Case.OUTAGE
    assert (whole == np.floor(optimal)).all()
    assert (whole[sent] >= devices["min_iterations"][sent]).all()
    assert (whole[sent] <= devices["max_iterations"][sent]).all()


def test_parts_add_up(planned, devices):
    plan = planned[1]
    energy = np.asarray(plan.compute_energy_j) + np.asarray(plan.transmit_energy_j)
    np.testing.assert_allclose(np.asarray(plan.energy_j), energy, rtol=1e-12)
    assert (
        np.asarray(plan.compute_time_s) + np.asarray(plan.upload_time_s) <= devices["deadline_s"] * (1 + 1e-12)
    ).all()
    assert (np.asarray(plan.energy_j) <= np.asarray(plan.optimal_energy_j) * (1 + 1e-12)).all()


def test_a_cap_on_iterations_is_reached_exactly(planned, devices):
    """A rounding error below the cap would cost a whole iteration."""
    plan = planned[1]
    near = np.abs(np.asarray(plan.optimal_iterations) / devices["max_iterations"] - 1.0) < 1e-9
    assert (np.asarray(plan.local_iterations)[near] == devices["max_iterations"][near]).all()


def test_outage_spends_nothing(planned):
    plan = planned[1]
    out = np.asarray(plan.case) == Case.OUTAGE
    assert out.any()
    for name in ("energy_j", "transmit_power_w", "local_iterations", "optimal_utility"):
        assert (np.asarray(getattr(plan, name))[out] == 0).all()


def test_no_rule_beats_the_proposed_utility(planned, devices):
    best = plans_of(RULES["proposed"], fleet_of(devices))
    sent = np.asarray(best.case) != Case.OUTAGE
    ours = np.asarray(best.optimal_utility)[sent]
    iterations = np.asarray(best.optimal_iterations)[sent]
    log_snr = np.log1p(np.asarray(best.transmit_power_w) * devices["gain"])[sent]
    size = brute_force.magnitude({name: value[sent] for name, value in devices.items()}, iterations, log_snr)
    assert (np.asarray(planned[1].optimal_utility)[sent] <= ours + 1e-9 * size).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_device_alone_plans_as_in_the_crowd(name, devices):
    """The simulator maps the very function that a single device runs."""
    fleet = fleet_of({key: value[:6] for key, value in devices.items()})
    together = plans_of(RULES[name], fleet)
    for index in range(6):
        member = jax.tree.map(lambda leaf, index=index: leaf[index], fleet)
        alone = plan_round(RULES[name], member.device, jnp.ones(()), member.preferences, member.effort)
        for ours, theirs in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(ours, theirs[index], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_relabelling_devices_relabels_the_plan(name, devices):
    few = {key: value[:64] for key, value in devices.items()}
    order = np.random.default_rng(1).permutation(64)
    before = plans_of(RULES[name], fleet_of(few))
    after = plans_of(RULES[name], fleet_of({key: value[order] for key, value in few.items()}))
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(np.asarray(one)[order], other, rtol=1e-12, atol=1e-15)


def test_single_precision_is_close_to_double(devices):
    """What the simulator may run in: float32 differs from float64 by rounding, not by case."""
    fleet = fleet_of({key: value[:500] for key, value in devices.items()})
    double = plans_of(RULES["proposed"], fleet)
    single = plans_of(RULES["proposed"], jax.tree.map(lambda leaf: leaf.astype(jnp.float32), fleet))
    assert single.energy_j.dtype == jnp.float32
    assert np.mean(np.asarray(single.case) == np.asarray(double.case)) > 0.98
    both = (np.asarray(single.case) == np.asarray(double.case)) & (np.asarray(double.case) != Case.OUTAGE)
    error = np.abs(np.asarray(single.optimal_energy_j)[both] / np.asarray(double.optimal_energy_j)[both] - 1)
    assert np.quantile(error, 0.99) < 1e-3


@pytest.mark.parametrize("name", ["equal_energy", "priced", "least_energy", "fedl"])
def test_comparison_rules_solve_their_own_problem(name, devices):
    """Exhaustive search over feasible choices, for the objective that each of these rules states."""
    few = {key: value[:400] for key, value in devices.items()}
    fleet = fleet_of(few)
    plan = plans_of(RULES[name], fleet)
    sent = np.flatnonzero(np.asarray(plan.case) != Case.OUTAGE)
    d = {key: value[sent] for key, value in few.items()}
    iterations, log_snr = feasible_grid(d, 200)
    energy = energy_of(d, iterations, log_snr)
    ours_j = np.asarray(plan.optimal_energy_j)[sent]
    ours = np.asarray(plan.optimal_iterations)[sent]
    wishes = jax.tree.map(lambda leaf: np.asarray(leaf)[sent], fleet.preferences)
    if name == "priced":
        worth = iterations - energy / wishes.iteration_price_j[:, None, None]
        best = worth.reshape(sent.size, -1).max(axis=1)
        mine = ours - ours_j / wishes.iteration_price_j
        assert (best - mine <= 1e-9 * np.maximum(ours, ours_j / wishes.iteration_price_j)).all()
    elif name == "equal_energy":
        affordable = np.where(energy <= wishes.energy_budget_j[:, None, None], iterations, 0.0)
        assert (affordable.reshape(sent.size, -1).max(axis=1) <= ours * (1 + 1e-9)).all()
        over = ours_j > wishes.energy_budget_j * (1 + 1e-9)
        np.testing.assert_allclose(ours[over], d["min_iterations"][over], rtol=1e-12)
    else:
        most, _ = brute_force.feasible_box(d)
        wanted = np.minimum(wishes.required_iterations, most)
        np.testing.assert_allclose(ours, wanted, rtol=1e-12)
        price = wishes.delay_price_w if name == "fedl" else np.zeros(sent.size)
        cost = energy + price[:, None, None] * upload_s_of(d, log_snr)
        enough = np.where(iterations >= wanted[:, None, None], cost, np.inf)
        mine = ours_j + price * np.asarray(plan.upload_time_s)[sent]
        assert (mine <= enough.reshape(sent.size, -1).min(axis=1) * (1 + 1e-9)).all()


def test_energy_and_delay_is_the_published_closed_form():
    """Tran et al. 2019, SUB2: tau = (S / B) / (1 + W((kappa / rho - 1) / e)), amplifier and circuit left out."""
    count = 200
    few = random_devices(count, seed=31)
    few = few | {"circuit_power_w": np.zeros(count), "amplifier_efficiency": np.ones(count)}
    fleet = fleet_of(few)
    plan = plans_of(RULES["fedl"], fleet)
    noise_w = 1.0 / few["gain"]
    exponent = 1.0 + lambertw((np.asarray(fleet.preferences.delay_price_w) / noise_w - 1.0) / np.e).real
    closed_form_s = few["payload_bits"] * np.log(2) / few["bandwidth_hz"] / exponent
    inside = (np.asarray(plan.case) == Case.INTERIOR) | (np.asarray(plan.case) == Case.MIN_ITERATIONS)
    waits = np.asarray(plan.upload_time_s) + np.asarray(plan.compute_time_s) < few["deadline_s"] * 0.99
    free = inside & waits
    assert free.sum() > 20
    np.testing.assert_allclose(np.asarray(plan.upload_time_s)[free], closed_form_s[free], rtol=1e-6)


def feasible_grid(d: dict[str, np.ndarray], points: int) -> tuple[np.ndarray, np.ndarray]:
    most, max_log_snr = brute_force.feasible_box(d)
    share = np.linspace(0.0, 1.0, points)
    iterations = (d["min_iterations"][:, None] + (most - d["min_iterations"])[:, None] * share)[:, :, None]
    left_s = (
        d["deadline_s"][:, None, None] - iterations * (d["bits_per_iteration"] * d["seconds_per_bit"])[:, None, None]
    )
    slowest = np.minimum(
        (d["payload_bits"] * np.log(2) / d["bandwidth_hz"])[:, None, None] / left_s, max_log_snr[:, None, None]
    )
    return np.broadcast_to(iterations, (most.size, points, points)), slowest * (
        max_log_snr[:, None, None] / slowest
    ) ** share


def upload_s_of(d: dict[str, np.ndarray], log_snr: np.ndarray) -> np.ndarray:
    return (d["payload_bits"] * np.log(2) / d["bandwidth_hz"])[:, None, None] / log_snr


def energy_of(d: dict[str, np.ndarray], iterations: np.ndarray, log_snr: np.ndarray) -> np.ndarray:
    upload_s = upload_s_of(d, log_snr)
    d = {name: value[:, None, None] for name, value in d.items()}
    radio_w = np.expm1(log_snr) / d["gain"] / d["amplifier_efficiency"] + d["circuit_power_w"]
    return iterations * d["bits_per_iteration"] * d["seconds_per_bit"] * d["compute_power_w"] + upload_s * radio_w
