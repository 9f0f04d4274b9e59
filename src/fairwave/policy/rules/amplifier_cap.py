"""Benchmark with the power bound read as the amplifier's input: P = efficiency * P_max.

The literal benchmark leaves the axes of the paper's figures; this reading stays inside them without a fitted number.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem, iterations_at, within_bounds
from fairwave.policy.rule import rule


@rule("The device does all iterations that fit, with the power bound read as the amplifier's input.")
def amplifier_cap(problem: DeviceProblem, preferences: Preferences, effort: Effort) -> Choice:
    """The power that the amplifier emits at P_max of input, and all the iterations that it leaves time for."""
    power_w = problem.device.amplifier_efficiency * problem.device.max_transmit_power_w
    log_snr = within_bounds(problem, jnp.log1p(power_w * problem.gain))
    return Choice(iterations=iterations_at(problem, log_snr), log_snr=log_snr)
