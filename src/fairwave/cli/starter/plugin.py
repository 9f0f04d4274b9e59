"""A policy and a scheme of your own, which scenario.toml names. docs/extending.md lists what else can be added."""

import jax.numpy as jnp

from fairwave import Rule, Scheme
from fairwave.policy.deviation import fair_levels
from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem, iterations_at, within_bounds


def at_half_power(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """Half of the power that the device has, or as much as it needs, and all iterations that fit beside the upload."""
    half_w = 0.5 * problem.device.max_transmit_power_w
    log_snr = within_bounds(problem, jnp.log1p(half_w * problem.gain))
    return Choice(iterations=iterations_at(problem, log_snr), log_snr=log_snr)


half_power_rule = Rule(
    "half_power", "The device uses half of the power and does all iterations that fit.", at_half_power
)
half_power = Scheme(
    name="half_power",
    summary="Devices use half of the power, and noise follows contribution.",
    plan=half_power_rule,
    noise_levels=fair_levels,
)
