"""Proposed rule: the choice of iterations and power that maximises a device's utility (paper, Theorem 2).

The paper's proof needs the cost term to fall with energy, a deadline that binds, and compute power above circuit
power. None of these holds everywhere, so the optimum is the best of three candidates that together cannot miss it:

* Spending beyond half the reference energy only hurts, so among choices that spend at least that much the best is
  on the path of least energy, where the utility is concave: one sign change of Eq. (39) (`_on_cheapest_path`).
  This is the paper's case. If the path reaches half the reference, nothing else can win.
* Otherwise the device has energy to burn, and the utility rewards burning it: with the most iterations, it uploads
  faster or slower than is cheapest, up to half the reference (`_burn`).
* If circuits draw more than computing, fewer iterations and a slower upload can burn more. On that part of the
  deadline the logs of both sides of Eq. (39) differ by a convex function of the iterations, so utility rises, falls
  and rises again: its only inner maximum is the first sign change (`_slow_upload`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.policy.cheapest import amplifier_growth, balanced_log_snr, cheapest_path
from fairwave.policy.effort import Effort, marginal_gain
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import (
    Choice,
    DeviceProblem,
    compute_energy_j,
    iterations_at,
    preference,
    time_left_s,
    transmit_energy_j,
)
from fairwave.policy.root import sign_change, where_needed
from fairwave.policy.rule import Rule
from fairwave.types import Scalar
from fairwave.wireless.rate import rate_of_log_snr_bps, upload_time_s


def maximise_utility(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """The globally best iterations and log-SNR of one device.

    Paper: Eq. (31).
    """
    reference_j = preferences.energy_reference_j
    frugal = _on_cheapest_path(problem, reference_j, effort)
    spent_j = compute_energy_j(problem.device, frugal.iterations) + transmit_energy_j(problem, frugal.log_snr)

    def with_energy_to_burn(problem: DeviceProblem) -> Choice:
        candidates = (
            frugal,
            _burn(problem, reference_j, jnp.maximum(frugal.log_snr, problem.slowest_at_most)),
            _slow_upload(problem, reference_j, effort),
        )
        worth = [preference(problem, effort, reference_j, candidate) for candidate in candidates]
        best = jnp.argmax(jnp.nan_to_num(jnp.stack(worth), nan=-jnp.inf))
        chosen: Choice = jax.tree.map(lambda *options: jnp.stack(options)[best], *candidates)
        return chosen

    # Short of the peak by less than this, burning gains less than rounding: the utility is flat there.
    short = spent_j < 0.5 * reference_j * (1.0 - 1e-9)
    return where_needed(short, with_energy_to_burn, problem, frugal)


def stationarity(
    *, compute_j: Scalar, energy_j: Scalar, energy_growth: Scalar, reference_j: Scalar, effort: Effort
) -> Scalar:
    """Marginal cost less marginal gain of one more joule of computing; zero at an inner optimum.

    `energy_growth` is the total energy that this joule brings with it: the paper's second factor.

    Paper: Eq. (39).
    """
    return (2.0 * energy_j - reference_j) * energy_growth - marginal_gain(effort, compute_j)


def energy_growth_at_deadline(problem: DeviceProblem, log_snr: Scalar) -> Scalar:
    """Joules of total energy per joule of computing while the deadline binds."""
    device = problem.device
    amplifier_w = amplifier_growth(log_snr) / (problem.gain * device.amplifier_efficiency)
    return 1.0 + (amplifier_w - device.circuit_power_w) / device.compute_power_w


def _at_deadline(problem: DeviceProblem, reference_j: Scalar, effort: Effort, log_snr: Scalar) -> Scalar:
    """`stationarity` as a function of log-SNR while the deadline binds."""
    compute_j = time_left_s(problem.device, log_snr) * problem.device.compute_power_w
    return stationarity(
        compute_j=compute_j,
        energy_j=compute_j + transmit_energy_j(problem, log_snr),
        energy_growth=energy_growth_at_deadline(problem, log_snr),
        reference_j=reference_j,
        effort=effort,
    )


def _on_cheapest_path(problem: DeviceProblem, reference_j: Scalar, effort: Effort) -> Choice:
    """The sign change of `stationarity` along the path of least energy.

    It is looked for where the deadline binds. There the path is where a joule of computing brings more than itself;
    if it brings less at the answer, a faster upload would be cheaper, and the answer is where time is to spare.
    """

    def as_log_of_ratio(log_snr: Scalar) -> Scalar:
        """`stationarity` with its terms as a quotient: nearly straight in log-SNR, so that Newton needs few steps.

        Where energy falls with computing, the answer lies further on.
        """
        compute_j = time_left_s(problem.device, log_snr) * problem.device.compute_power_w
        growth = energy_growth_at_deadline(problem, log_snr)
        rises = growth > 0.0
        unspent = stationarity(
            compute_j=compute_j,
            energy_j=jnp.zeros_like(log_snr),
            energy_growth=jnp.where(rises, growth, 1.0),
            reference_j=reference_j,
            effort=effort,
        )
        quotient = 2.0 * (compute_j + transmit_energy_j(problem, log_snr)) * growth / -unspent
        return jnp.where(rises, jnp.log(jnp.where(rises, quotient, 1.0)), -1.0)

    slowest, fastest = problem.min_log_snr, problem.slowest_at_most
    no_more = (energy_growth_at_deadline(problem, slowest) >= 1.0) & (
        _at_deadline(problem, reference_j, effort, slowest) >= 0.0
    )
    log_snr = sign_change(as_log_of_ratio, slowest, fastest, negative_at_low=~no_more)
    hurried = Choice(iterations=iterations_at(problem, log_snr), log_snr=log_snr)
    time_to_spare = energy_growth_at_deadline(problem, log_snr) < 1.0
    return where_needed(
        time_to_spare, lambda problem: _with_time_to_spare(problem, reference_j, effort), problem, hurried
    )


def _with_time_to_spare(problem: DeviceProblem, reference_j: Scalar, effort: Effort) -> Choice:
    """The sign change of `stationarity` over iterations, at the cheapest log-SNR, before the deadline binds."""
    path = cheapest_path(problem)
    upload_j = transmit_energy_j(problem, path.log_snr)

    def unhurried(iterations: Scalar) -> Scalar:
        compute_j = compute_energy_j(problem.device, iterations)
        return stationarity(
            compute_j=compute_j,
            energy_j=compute_j + upload_j,
            energy_growth=jnp.ones_like(compute_j),
            reference_j=reference_j,
            effort=effort,
        )

    iterations = sign_change(unhurried, problem.device.min_iterations, path.corner_iterations)
    return Choice(iterations=iterations, log_snr=path.log_snr)


def _burn(problem: DeviceProblem, reference_j: Scalar, cheapest_log_snr: Scalar) -> Choice:
    """From the cheapest upload towards the dearer of the slowest and the fastest, until the missing energy is spent."""
    missing_j = 0.5 * reference_j - compute_energy_j(problem.device, problem.most_iterations)
    slowest, fastest = problem.slowest_at_most, problem.max_log_snr
    dearer = jnp.where(transmit_energy_j(problem, slowest) > transmit_energy_j(problem, fastest), slowest, fastest)
    log_snr = sign_change(lambda at: transmit_energy_j(problem, at) - missing_j, cheapest_log_snr, dearer)
    return Choice(iterations=problem.most_iterations, log_snr=log_snr)


def _slow_upload(problem: DeviceProblem, reference_j: Scalar, effort: Effort) -> Choice:
    """The first maximum along the deadline while more iterations cost less energy."""
    device = problem.device
    turning = balanced_log_snr(problem, device.circuit_power_w - device.compute_power_w)
    end = jnp.clip(turning, problem.min_log_snr, problem.slowest_at_most)

    def convex_slope(log_snr: Scalar) -> Scalar:
        """Sign of the slope of the convex difference of logs; falling where the device overspends."""
        growth = energy_growth_at_deadline(problem, log_snr)
        upload_s = upload_time_s(device, rate_of_log_snr_bps(device, log_snr))
        compute_j = time_left_s(device, log_snr) * device.compute_power_w
        missing_j = 0.5 * reference_j - compute_j - transmit_energy_j(problem, log_snr)
        bend = (
            log_snr**2
            * jnp.exp(log_snr)
            / (problem.gain * device.amplifier_efficiency * device.compute_power_w**2 * upload_s)
        )
        return jnp.where(missing_j > 0.0, missing_j * (growth / effort.decay_j + bend) - growth**2, -1.0)

    lowest = sign_change(convex_slope, problem.min_log_snr, end)
    log_snr = sign_change(lambda at: _at_deadline(problem, reference_j, effort, at), problem.min_log_snr, lowest)
    return Choice(iterations=iterations_at(problem, log_snr), log_snr=log_snr)


proposed = Rule("proposed", "The device maximises its utility.", maximise_utility)
