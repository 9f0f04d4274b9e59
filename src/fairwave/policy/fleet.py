"""All that a scenario's devices know of themselves."""

from __future__ import annotations

import equinox as eqx
import jax

from fairwave.policy.effort import Effort, first_guess
from fairwave.policy.least_iterations import least_iterations
from fairwave.policy.preferences import Preferences, preferences
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.hardware import devices, distances_m
from fairwave.wireless.physical_device import Device


class Fleet(eqx.Module):
    """The devices of a cell; fields that all devices share have no device axis."""

    device: Device
    preferences: Preferences
    effort: Effort


def fleet(scenario: Scenario, values: DeviceValues) -> Fleet:
    """The devices of a scenario before their first round."""
    return Fleet(
        device=physical_devices(scenario, values),
        preferences=preferences(scenario, values),
        effort=first_guess(values),
    )


def physical_devices(scenario: Scenario, values: DeviceValues) -> Device:
    """The devices of a scenario as the physics sees them, with the fewest iterations that each has to do."""
    return devices(scenario, values, distances_m(scenario, values), least_iterations(scenario, values))


def per_device_axes(members: Fleet) -> Fleet:
    """Along which axis `vmap` finds the devices in each field: none where all share it."""
    axes: Fleet = jax.tree.map(lambda leaf: 0 if leaf.ndim else None, members)
    return axes
