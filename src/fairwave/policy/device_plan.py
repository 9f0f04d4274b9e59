"""From a choice to what the device does in a round: whole iterations, times, energies, utility."""

from __future__ import annotations

import dataclasses
import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import (
    Choice,
    DeviceProblem,
    compute_energy_j,
    constraint_violation,
    objective,
    pose,
    transmit_energy_j,
)
from fairwave.policy.rule import Rule
from fairwave.policy.utility import utility
from fairwave.types import Count, Scalar
from fairwave.wireless.energy import compute_time_s, radio_power_w, round_energy_j
from fairwave.wireless.physical_device import Device
from fairwave.wireless.rate import power_of_log_snr_w, rate_of_log_snr_bps, upload_time_s


class Case(enum.IntEnum):
    """Which limit a device's choice rests on. Where several hold, the first in this order is named."""

    OUTAGE = 0
    """No power that the device has meets the deadline: nothing is sent and nothing is spent."""
    MAX_POWER = 1
    MIN_POWER = 2
    """Least power, hence fewest iterations, with the deadline binding."""
    MAX_ITERATIONS = 3
    """The device's own cap on iterations."""
    MIN_ITERATIONS = 4
    """Fewest iterations at more than the least power: the deadline does not bind."""
    INTERIOR = 5


class DevicePlan(eqx.Module):
    """One device's round.

    `optimal_...` are the solution of the problem, where iterations need not be whole. Iterations are then rounded
    down at the same power: re-optimising the power for whole iterations would lose the equal energy.
    """

    case: Count
    optimal_iterations: Scalar
    optimal_energy_j: Scalar
    optimal_utility: Scalar
    local_iterations: Count
    transmit_power_w: Scalar
    uplink_rate_bps: Scalar
    compute_time_s: Scalar
    upload_time_s: Scalar
    compute_energy_j: Scalar
    transmit_energy_j: Scalar
    energy_j: Scalar
    utility: Scalar
    violation: Scalar
    """By how much the optimum breaks a constraint, relative; NaN where the solve failed."""


def plan_round(
    rule: Rule, device: Device, planned_gain: Scalar, preferences: Preferences, effort: Effort
) -> DevicePlan:
    """What one device does, from what it alone knows."""
    problem = pose(device, planned_gain)
    return _carry_out(problem, preferences, effort, rule(problem, preferences, effort))


def _carry_out(problem: DeviceProblem, preferences: Preferences, effort: Effort, choice: Choice) -> DevicePlan:
    device = problem.device
    whole = Choice(iterations=jnp.floor(choice.iterations), log_snr=choice.log_snr)
    power_w = power_of_log_snr_w(choice.log_snr, problem.gain)
    rate_bps = rate_of_log_snr_bps(device, choice.log_snr)
    compute_s, upload_s = compute_time_s(device, whole.iterations), upload_time_s(device, rate_bps)
    compute_j, transmit_j = compute_energy_j(device, whole.iterations), transmit_energy_j(problem, choice.log_snr)
    plan = DevicePlan(
        case=_case(problem, choice),
        optimal_iterations=choice.iterations,
        optimal_energy_j=compute_energy_j(device, choice.iterations) + transmit_j,
        optimal_utility=objective(problem, effort, preferences.energy_reference_j, choice),
        local_iterations=whole.iterations.astype(jnp.int32),
        transmit_power_w=power_w,
        uplink_rate_bps=rate_bps,
        compute_time_s=compute_s,
        upload_time_s=upload_s,
        compute_energy_j=compute_j,
        transmit_energy_j=transmit_j,
        energy_j=round_energy_j(device, compute_s=compute_s, upload_s=upload_s, radio_w=radio_power_w(device, power_w)),
        utility=objective(problem, effort, preferences.energy_reference_j, whole),
        violation=constraint_violation(problem, choice),
    )
    silent: DevicePlan = jax.tree.map(lambda leaf: jnp.where(problem.outage, jnp.zeros_like(leaf), leaf), plan)
    return silent


def _case(problem: DeviceProblem, choice: Choice) -> Count:
    device = problem.device
    slack = 16.0 * float(np.finfo(choice.log_snr.dtype).eps)
    holds = (
        (choice.log_snr >= problem.max_log_snr * (1.0 - slack), Case.MAX_POWER),
        (choice.log_snr <= problem.min_log_snr * (1.0 + slack), Case.MIN_POWER),
        (choice.iterations >= problem.most_iterations * (1.0 - slack), Case.MAX_ITERATIONS),
        (choice.iterations <= device.min_iterations * (1.0 + slack), Case.MIN_ITERATIONS),
    )
    return jnp.select([flag for flag, _ in holds], [jnp.asarray(int(case)) for _, case in holds], int(Case.INTERIOR))


def with_share(device: Device, preferences: Preferences, effort: Effort, plan: DevicePlan, share: Scalar) -> DevicePlan:
    """The plan of a device that does this share of its iterations and spends accordingly; its upload stays."""
    iterations = jnp.floor(share * plan.local_iterations)
    compute_j = compute_energy_j(device, iterations)
    energy_j = compute_j + plan.transmit_energy_j
    reduced = dataclasses.replace(
        plan,
        local_iterations=iterations.astype(plan.local_iterations.dtype),
        compute_time_s=compute_time_s(device, iterations),
        compute_energy_j=compute_j,
        energy_j=energy_j,
        utility=utility(effort, compute_j, energy_j, preferences.energy_reference_j),
    )
    whole = share >= 1.0
    done: DevicePlan = jax.tree.map(lambda new, old: jnp.where(whole, old, new), reduced, plan)
    return done
