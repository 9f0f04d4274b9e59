"""Peer: least energy for a required number of iterations, as in energy-minimising wireless federated learning.

Rule of Yang et al., "Energy Efficient Federated Learning Over Wireless Communication Networks", IEEE Trans. Wireless
Commun., 2021 (arXiv:1911.02417), for one device whose processor speed and bandwidth are given.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.cheapest import cheapest_choice
from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem
from fairwave.policy.rule import rule


@rule("The device does the required iterations with the least energy.")
def least_energy(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """The required iterations, or as many as the channel allows, at the cheapest log-SNR that meets the deadline."""
    wanted = jnp.clip(preferences.required_iterations, problem.device.min_iterations, problem.most_iterations)
    return cheapest_choice(problem, wanted)
