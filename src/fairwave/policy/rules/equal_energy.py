"""Ablation: the most iterations that an energy budget buys. It shows what the proposed rule amounts to."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.cheapest import cheapest_choice, cheapest_path
from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import (
    Choice,
    DeviceProblem,
    compute_energy_j,
    iterations_at,
    time_left_s,
    transmit_energy_j,
)
from fairwave.policy.root import sign_change
from fairwave.policy.rule import rule
from fairwave.types import Scalar


@rule("The device does as many iterations as an energy budget allows.")
def equal_energy(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """Iterations up to the budget along the path of least energy; at least the fewest, whatever they cost."""
    device, path, budget_j = problem.device, cheapest_path(problem), preferences.energy_budget_j
    upload_j = transmit_energy_j(problem, path.log_snr)
    affordable = (budget_j - upload_j) / compute_energy_j(device, jnp.ones_like(upload_j))
    bound_by_deadline = affordable > path.corner_iterations

    def overspent_j(log_snr: Scalar) -> Scalar:
        return time_left_s(device, log_snr) * device.compute_power_w + transmit_energy_j(problem, log_snr) - budget_j

    high = jnp.where(bound_by_deadline, problem.slowest_at_most, path.corner_log_snr)
    log_snr = sign_change(overspent_j, path.corner_log_snr, high)
    iterations = jnp.where(
        bound_by_deadline, iterations_at(problem, log_snr), jnp.maximum(affordable, device.min_iterations)
    )
    return cheapest_choice(problem, iterations)
