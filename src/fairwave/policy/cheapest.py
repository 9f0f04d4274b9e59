"""The cheapest way to upload, and the path of least energy through the feasible set.

For a number of iterations, the least energy is spent at the log-SNR where the upload is cheapest, or as near to it
as the deadline allows. Along this path energy grows with iterations and is convex in them, whatever the ratio of
circuit to compute power: every rule that dislikes energy has its optimum on it.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.problem import (
    Choice,
    DeviceProblem,
    filling_iterations,
    slowest_log_snr,
    within_bounds,
)
from fairwave.types import Scalar

_HALLEY_STEPS = 3


class CheapestPath(eqx.Module):
    """The path of least energy: first `log_snr` stays put and iterations grow, then the deadline binds."""

    log_snr: Scalar
    corner_iterations: Scalar
    """Iterations at which the deadline starts to bind."""
    corner_log_snr: Scalar
    """Log-SNR from which the deadline-bound part goes up to `problem.slowest_at_most`."""


def cheapest_path(problem: DeviceProblem) -> CheapestPath:
    """The path of least energy of one device."""
    device = problem.device
    log_snr = within_bounds(problem, balanced_log_snr(problem, device.circuit_power_w))
    fill = filling_iterations(device, log_snr)
    return CheapestPath(
        log_snr=log_snr,
        corner_iterations=jnp.clip(fill, device.min_iterations, problem.most_iterations),
        corner_log_snr=jnp.minimum(log_snr, problem.slowest_at_most),
    )


def cheapest_choice(problem: DeviceProblem, iterations: Scalar) -> Choice:
    """The least-energy way to do so many iterations."""
    log_snr = jnp.maximum(slowest_log_snr(problem.device, iterations), cheapest_path(problem).log_snr)
    return Choice(iterations=iterations, log_snr=jnp.minimum(log_snr, problem.max_log_snr))


def balanced_log_snr(problem: DeviceProblem, saved_power_w: Scalar) -> Scalar:
    """Log-SNR at which faster upload costs what `saved_power_w` saves in the time gained; 0 if that is not positive.

    Solves (Z - 1) e^Z + 1 = y with y = gain * efficiency * saved power, by Halley's method from a start within 1.1
    above the root for y up to 1e25; three steps leave a relative error of 1e-11. Below y = 1e-6 rounding leaves more.
    Energy is flat there: it feels the square of the error.
    """
    target = jnp.maximum(problem.gain * problem.device.amplifier_efficiency * saved_power_w, 0.0)
    log_target = jnp.log1p(target)
    far = 1.0 + log_target - jnp.log1p(0.9 * jnp.maximum(log_target - 1.0, 0.0))
    log_snr = jnp.minimum(jnp.sqrt(2.0 * target), far)
    for _ in range(_HALLEY_STEPS):
        grown = 1.0 + jnp.expm1(log_snr)
        error = amplifier_growth(log_snr) - target
        slope, bend = log_snr * grown, (1.0 + log_snr) * grown
        scale = 2.0 * slope**2 - error * bend
        step = 2.0 * error * slope / jnp.where(scale > 0.0, scale, 1.0)
        log_snr = jnp.maximum(log_snr - jnp.where(scale > 0.0, step, 0.0), 0.0)
    return log_snr


def amplifier_growth(log_snr: Scalar) -> Scalar:
    """(Z - 1) e^Z + 1: how fast amplifier energy grows with log-SNR, per 1 / (gain * efficiency)."""
    grown = jnp.expm1(log_snr)
    return log_snr * (1.0 + grown) - grown
