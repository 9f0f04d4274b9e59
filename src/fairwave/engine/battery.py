"""Batteries that run out: a device sits a round out that its charge does not cover."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from fairwave.errors import ScenarioError
from fairwave.learning.features import preparation_iterations
from fairwave.policy.device_plan import DevicePlan
from fairwave.policy.problem import compute_energy_j
from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Flag, PerDevice, Scalar
from fairwave.wireless.energy import compute_time_s
from fairwave.wireless.hardware import LEAST_ASKED_BY
from fairwave.wireless.physical_device import Device


def least_energy_j(device: Device) -> Scalar:
    """No round costs less: the fewest iterations, and an upload that a good enough channel makes as cheap as can be."""
    return compute_energy_j(device, device.min_iterations)


def covers(left_j: Scalar, device: Device, plan: DevicePlan) -> Flag:
    """Whether one device's charge is enough for its plan, or, in outage, for any; a failed plan is left to be found."""
    return ~(jnp.maximum(plan.energy_j, least_energy_j(device)) > left_j)


def preparation_j(device: Device, learning: Learning, samples: np.ndarray) -> np.ndarray:
    """Energy that each device spends before the first round on the features of its samples."""
    return np.asarray(compute_energy_j(device, jnp.asarray(preparation_iterations(learning, samples))))


def preparation_s(device: Device, learning: Learning, samples: np.ndarray) -> np.ndarray:
    """Time that the same takes."""
    return np.asarray(compute_time_s(device, jnp.asarray(preparation_iterations(learning, samples))))


def capacities_j(values: DeviceValues, device: Device, learning: Learning, samples: np.ndarray) -> PerDevice | None:
    """What every device's battery holds before the first round, features computed; None where there are none.

    Somebody must be able to begin.
    """
    given = values("battery_capacity_j")
    if given is None:
        return None
    capacity_j = np.broadcast_to(given, (values.num_devices,)) - preparation_j(device, learning, samples)
    least_j = np.broadcast_to(np.asarray(least_energy_j(device)), capacity_j.shape)
    if not (capacity_j >= least_j).any():
        raise ScenarioError(
            f"compute.battery_capacity_j: {capacity_j.max():g} J before the first round is less than any round costs "
            f"({least_j.min():g} J for its fewest iterations alone: {LEAST_ASKED_BY}); give devices larger "
            "batteries, or ask for fewer"
        )
    return jnp.asarray(capacity_j)
