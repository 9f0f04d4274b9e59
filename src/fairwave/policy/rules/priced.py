"""Benchmark that pays a price per iteration: maximise j - E / price.

It is the best use of a shared energy budget for the sum of iterations. The preset's price is calibrated so that the
mean energy cut of the proposed rule is the paper's 12.17 %; the paper does not give this rule.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.cheapest import balanced_log_snr, cheapest_choice, cheapest_path
from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem, compute_energy_j, iterations_at, within_bounds
from fairwave.policy.rule import rule


@rule("The device does iterations up to a price for each (calibrated, not in the paper).")
def priced(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """Iterations as long as the next one costs less than its price."""
    device = problem.device
    iteration_j = compute_energy_j(device, jnp.ones_like(problem.gain))
    surplus_w = (preferences.iteration_price_j / iteration_j - 1.0) * device.compute_power_w
    log_snr = within_bounds(problem, balanced_log_snr(problem, device.circuit_power_w + surplus_w))
    log_snr = jnp.maximum(log_snr, cheapest_path(problem).log_snr)
    iterations = jnp.where(surplus_w > 0.0, iterations_at(problem, log_snr), device.min_iterations)
    return cheapest_choice(problem, iterations)
