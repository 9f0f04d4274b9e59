"""The device's problem in two variables: iterations j and log-SNR Z (power in disguise)."""

from __future__ import annotations

import functools

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.effort import Effort
from fairwave.policy.utility import utility, utility_of_choice
from fairwave.types import Flag, Scalar
from fairwave.wireless.energy import compute_time_s, radio_power_w
from fairwave.wireless.physical_device import Device
from fairwave.wireless.rate import LN2, gain_per_watt, power_of_log_snr_w, rate_of_log_snr_bps, upload_time_s


class DeviceProblem(eqx.Module):
    """One device over one channel: its limits in both variables.

    `most_iterations` and `slowest_at_most` are the far corner of the feasible set: the most iterations, and the
    least log-SNR with which they still meet the deadline.
    """

    device: Device
    gain: Scalar
    min_log_snr: Scalar
    max_log_snr: Scalar
    most_iterations: Scalar
    slowest_at_most: Scalar

    @property
    def outage(self) -> Flag:
        """Not even full power uploads in the time that the fewest iterations leave."""
        return self.min_log_snr > self.max_log_snr


class Choice(eqx.Module):
    """What a device decides."""

    iterations: Scalar
    log_snr: Scalar


def pose(device: Device, fading_gain: Scalar) -> DeviceProblem:
    """The problem of one device over a channel that it believes to have this gain."""
    gain = gain_per_watt(device, fading_gain)
    max_log_snr = jnp.log1p(device.max_transmit_power_w * gain)
    allowed = max_iterations(device, max_log_snr)
    capped = device.max_iterations < allowed
    return DeviceProblem(
        device=device,
        gain=gain,
        min_log_snr=slowest_log_snr(device, device.min_iterations),
        max_log_snr=max_log_snr,
        most_iterations=jnp.maximum(jnp.minimum(allowed, device.max_iterations), device.min_iterations),
        slowest_at_most=jnp.where(
            capped, slowest_log_snr(device, jnp.where(capped, device.max_iterations, 0.0)), max_log_snr
        ),
    )


def slowest_log_snr(device: Device, iterations: Scalar) -> Scalar:
    """Log-SNR that just meets the deadline after so many iterations; infinite if no time is left."""
    left_s = device.deadline_s - compute_time_s(device, iterations)
    upload_s_of_unit = device.payload_bits * LN2 / device.bandwidth_hz
    return jnp.where(left_s > 0.0, upload_s_of_unit / jnp.where(left_s > 0.0, left_s, 1.0), jnp.inf)


def min_transmit_power_w(problem: DeviceProblem) -> Scalar:
    """Least power that leaves time for the fewest iterations.

    Paper: Eq. (32).
    """
    return power_of_log_snr_w(problem.min_log_snr, problem.gain)


def max_iterations(device: Device, max_log_snr: Scalar) -> Scalar:
    """Most iterations that the deadline leaves time for at full power.

    Paper: Eq. (33).
    """
    return filling_iterations(device, max_log_snr)


def iterations_at(problem: DeviceProblem, log_snr: Scalar) -> Scalar:
    """Iterations that fill the time which the upload leaves, within the problem's limits.

    At the far corner these are the most iterations exactly, not a rounding error less: they will be rounded down.

    Paper: Eq. (40).
    """
    fill = jnp.clip(filling_iterations(problem.device, log_snr), problem.device.min_iterations, problem.most_iterations)
    return jnp.where(log_snr >= problem.slowest_at_most, problem.most_iterations, fill)


def within_bounds(problem: DeviceProblem, log_snr: Scalar) -> Scalar:
    """Log-SNR held between its bounds.

    Paper: Eq. (38).
    """
    return jnp.where(log_snr < problem.max_log_snr, jnp.maximum(problem.min_log_snr, log_snr), problem.max_log_snr)


def time_left_s(device: Device, log_snr: Scalar) -> Scalar:
    """Time left for computing by an upload at that log-SNR."""
    return device.deadline_s - upload_time_s(device, rate_of_log_snr_bps(device, log_snr))


def filling_iterations(device: Device, log_snr: Scalar) -> Scalar:
    """Iterations that fit beside an upload at that log-SNR, whole or not."""
    return time_left_s(device, log_snr) / compute_time_s(device, jnp.ones_like(log_snr))


def compute_energy_j(device: Device, iterations: Scalar) -> Scalar:
    """Energy of so many iterations."""
    return compute_time_s(device, iterations) * device.compute_power_w


def transmit_energy_j(problem: DeviceProblem, log_snr: Scalar) -> Scalar:
    """Energy of one upload; convex in log-SNR, falling while circuits dominate and rising once power does."""
    device = problem.device
    upload_s = upload_time_s(device, rate_of_log_snr_bps(device, log_snr))
    return upload_s * radio_power_w(device, power_of_log_snr_w(log_snr, problem.gain))


def objective(problem: DeviceProblem, effort: Effort, energy_reference_j: Scalar, choice: Choice) -> Scalar:
    """Expected utility of a choice."""
    return utility(effort, *_energies_j(problem, choice), energy_reference_j)


def preference(problem: DeviceProblem, effort: Effort, energy_reference_j: Scalar, choice: Choice) -> Scalar:
    """What choices are compared by: their utility, but for a constant."""
    return utility_of_choice(effort, *_energies_j(problem, choice), energy_reference_j)


def _energies_j(problem: DeviceProblem, choice: Choice) -> tuple[Scalar, Scalar]:
    """Compute energy and energy in all of a choice."""
    compute_j = compute_energy_j(problem.device, choice.iterations)
    return compute_j, compute_j + transmit_energy_j(problem, choice.log_snr)


def constraint_violation(problem: DeviceProblem, choice: Choice) -> Scalar:
    """By how much a choice breaks its worst constraint, relative to that limit; at most 0 if it breaks none.

    Paper: Eq. (35).
    """
    device = problem.device
    upload_s = upload_time_s(device, rate_of_log_snr_bps(device, choice.log_snr))
    excess = (
        (compute_time_s(device, choice.iterations) + upload_s) / device.deadline_s - 1.0,
        choice.log_snr / problem.max_log_snr - 1.0,
        1.0 - choice.log_snr / problem.min_log_snr,
        1.0 - choice.iterations / device.min_iterations,
        choice.iterations / problem.most_iterations - 1.0,
    )
    return functools.reduce(jnp.maximum, excess)


def most_iterations_in_time(device: Device) -> Scalar:
    """No channel lets a device do more in a round: the deadline spent on computing alone, or its own cap."""
    return jnp.floor(jnp.minimum(device.deadline_s / compute_time_s(device, jnp.ones(())), device.max_iterations))
