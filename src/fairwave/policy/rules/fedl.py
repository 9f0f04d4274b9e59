"""Peer: energy plus priced delay for a required number of iterations, as in FEDL.

Rule of Tran, Bao, Zomaya, Nguyen, Hong, "Federated Learning over Wireless Networks: Optimization Model Design and
Analysis", INFOCOM 2019, subproblem SUB2, for one device whose processor speed is given; circuit power, which their
model leaves out, adds to the price of time.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.cheapest import balanced_log_snr
from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem, slowest_log_snr, within_bounds
from fairwave.policy.rule import rule


@rule("The device does the required iterations with the least energy and a price on delay.")
def fedl(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """The required iterations, or as many as the channel allows, at the log-SNR with the least energy and delay."""
    device = problem.device
    wanted = jnp.clip(preferences.required_iterations, device.min_iterations, problem.most_iterations)
    best = within_bounds(problem, balanced_log_snr(problem, device.circuit_power_w + preferences.delay_price_w))
    log_snr = jnp.minimum(jnp.maximum(slowest_log_snr(device, wanted), best), problem.max_log_snr)
    return Choice(iterations=wanted, log_snr=log_snr)
