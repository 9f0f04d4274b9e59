"""Plain parameter arrays as the records that the policies take."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.policy.device_plan import DevicePlan, plan_round
from fairwave.policy.effort import effort_model
from fairwave.policy.fleet import Fleet
from fairwave.policy.preferences import Preferences
from fairwave.policy.rule import Rule
from fairwave.wireless.physical_device import Device

_DEVICE = (
    "bandwidth_hz",
    "max_transmit_power_w",
    "amplifier_efficiency",
    "circuit_power_w",
    "payload_bits",
    "compute_power_w",
    "seconds_per_bit",
    "bits_per_iteration",
    "min_iterations",
    "max_iterations",
    "deadline_s",
)


def fleet_of(devices: dict[str, np.ndarray]) -> Fleet:
    """Devices whose gain per watt is the given one at a fading gain of 1."""
    ones = np.ones_like(devices["gain"])
    return Fleet(
        device=Device(
            path_gain=jnp.asarray(devices["gain"] * devices["bandwidth_hz"]),
            noise_psd_w_per_hz=jnp.asarray(ones),
            modulation_gap=jnp.asarray(ones),
            **{name: jnp.asarray(devices[name]) for name in _DEVICE},
        ),
        preferences=Preferences(
            energy_reference_j=jnp.asarray(devices["energy_reference_j"]),
            iteration_price_j=jnp.asarray(devices["energy_reference_j"] / devices["min_iterations"]),
            energy_budget_j=jnp.asarray(0.5 * devices["energy_reference_j"]),
            required_iterations=jnp.asarray(2.0 * devices["min_iterations"]),
            delay_price_w=jnp.asarray(devices["compute_power_w"]),
        ),
        effort=effort_model(jnp.asarray(devices["effort_scale"]), jnp.asarray(devices["effort_decay_j"])),
    )


@functools.partial(jax.jit, static_argnums=0)
def plans_of(rule: Rule, fleet: Fleet) -> DevicePlan:
    """Every device's plan at a fading gain of 1."""
    one = jnp.ones_like(fleet.device.path_gain)
    return jax.vmap(lambda member, gain: plan_round(rule, member.device, gain, member.preferences, member.effort))(
        fleet, one
    )
