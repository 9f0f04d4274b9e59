"""The devices of a scenario, as the physics sees them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from fairwave.errors import ScenarioError
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DISTANCE, DeviceValues
from fairwave.scenario.quantity import NEAREST_M, FloatColumn, Limit
from fairwave.units import LENGTH
from fairwave.wireless.energy import seconds_per_bit
from fairwave.wireless.path_loss import path_loss_constant
from fairwave.wireless.physical_device import Device
from fairwave.wireless.placement import placed

MOST_ITERATIONS = 1e9
LEAST_ASKED_BY = "compute.min_iterations, or learning.local_accuracy"
"""What a device's fewest iterations follow from."""
MOST_NAMED = 20
"""Devices that an error names one by one."""


def devices(scenario: Scenario, values: DeviceValues, distance_m: FloatColumn, min_iterations: FloatColumn) -> Device:
    """All devices of a scenario in one record; fields that all devices share stay scalars.

    Some may be too slow to ever take part: `refuse_slow` refuses them, a plan reports them.
    """
    radio, compute = scenario.radio, scenario.compute
    processor = compute.processor
    given = {
        "path_gain": path_gain(scenario, values, distance_m),
        "noise_psd_w_per_hz": radio.noise_psd_w_per_hz,
        "modulation_gap": radio.modulation_gap,
        "payload_bits": scenario.payload_bits(),
        "deadline_s": scenario.cell.deadline_s,
        "bits_per_iteration": _or(values("bits_per_iteration"), scenario.batch_bits()),
        "min_iterations": min_iterations,
        "max_iterations": _or(values("max_iterations"), np.inf),
        "seconds_per_bit": seconds_per_bit(**processor.model_dump()) if processor else values("seconds_per_bit"),
    }
    for name in (
        "bandwidth_hz",
        "max_transmit_power_w",
        "amplifier_efficiency",
        "circuit_power_w",
        "compute_power_w",
    ):
        given[name] = values(name)
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    _check(arrays)
    return Device(**{name: jnp.asarray(value, dtype=float) for name, value in arrays.items()})


def distances_m(scenario: Scenario, values: DeviceValues) -> FloatColumn:
    """Distance of every device from the access point."""
    law = placed(scenario.cell.placement, scenario.cell.num_devices, scenario.run.seed)
    resolved = (
        law
        if isinstance(law, np.ndarray)
        else values.resolve(law, f"cell.placement.{DISTANCE}", Limit(LENGTH, NEAREST_M, low_allowed=True))
    )
    return np.broadcast_to(resolved, (scenario.cell.num_devices,))


def path_gain(scenario: Scenario, values: DeviceValues, distance_m: FloatColumn) -> FloatColumn:
    """Share of the transmitted power that arrives on average: distance law, less excess loss."""
    law = path_loss_constant(scenario.radio.carrier_hz) * distance_m**-scenario.radio.path_loss_exponent
    return np.asarray(law / _or(values("excess_loss"), 1.0))


def _or(value: FloatColumn | None, default: float) -> FloatColumn:
    return np.asarray(default) if value is None else value


def too_slow(device: Device) -> FloatColumn:
    """A mask of the devices whose fewest iterations take all of the deadline or more."""
    least_time_s = device.min_iterations * device.bits_per_iteration * device.seconds_per_bit
    return np.broadcast_to(np.asarray(least_time_s >= device.deadline_s), np.atleast_1d(device.path_gain).shape)


def refuse_slow(device: Device) -> None:
    """Refuse a cell in which some device could never take part; all of them are named."""
    late = np.flatnonzero(too_slow(device))
    if late.size:
        more = f" and {late.size - MOST_NAMED} more" if late.size > MOST_NAMED else ""
        listed = ", ".join(map(str, late[:MOST_NAMED])) + more
        who = f"device {listed} has done its" if late.size == 1 else f"devices {listed} have done their"
        least = float(np.max(np.asarray(device.min_iterations)))
        raise ScenarioError(
            f"cell.deadline_s: {float(device.deadline_s):g} s is over before {who} fewest iterations, up to {least:g} "
            f"({LEAST_ASKED_BY}); lengthen the deadline or ask for fewer"
        )


def _check(arrays: dict[str, FloatColumn]) -> None:
    """What no single parameter can be blamed for."""
    least_time_s = arrays["min_iterations"] * arrays["bits_per_iteration"] * arrays["seconds_per_bit"]
    room = np.minimum(arrays["deadline_s"] * arrays["min_iterations"] / least_time_s, arrays["max_iterations"])
    if np.max(room) > MOST_ITERATIONS:
        raise ScenarioError(
            f"compute.seconds_per_bit: the deadline leaves room for {float(np.max(room)):.3g} iterations, more than "
            f"{MOST_ITERATIONS:.0e} can be counted; set compute.max_iterations"
        )
    capped = np.flatnonzero(np.atleast_1d(arrays["max_iterations"] < arrays["min_iterations"]))
    if capped.size:
        raise ScenarioError(
            f"compute.max_iterations: below the fewest iterations of device {capped[0]} ({LEAST_ASKED_BY}); raise the "
            "one or lower the other"
        )
