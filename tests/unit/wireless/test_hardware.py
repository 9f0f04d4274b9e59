"""What the physics asks of a fleet as a whole, and constants of nature."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import constants

from fairwave.errors import ScenarioError
from fairwave.policy.fleet import physical_devices
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.hardware import MOST_ITERATIONS, MOST_NAMED, refuse_slow
from fairwave.wireless.mobility import Motion, moved
from fairwave.wireless.path_loss import path_loss_constant
from fairwave.wireless.physical_device import Device


def fleet(*overrides: str, devices: int = 2) -> Device:
    scenario = load_scenario("paper", [f"cell.num_devices={devices}", *overrides])
    return physical_devices(scenario, DeviceValues(scenario))


def test_the_gain_at_one_metre_has_the_speed_of_light():
    wavelength_m = constants.speed_of_light / 2.4e9
    assert path_loss_constant(2.4e9) == pytest.approx((wavelength_m / (4 * math.pi)) ** 2, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("share", "refused"), [(0.9, False), (1.1, True)])
def test_more_iterations_than_can_be_counted_are_refused(share, refused):
    """From a billion on, whatever the fewest are."""
    per_iteration_s = 0.5 / (share * MOST_ITERATIONS)
    overrides = ["cell.deadline_s=0.5", "compute.bits_per_iteration=1000", "compute.min_iterations=7"]
    overrides += [f"compute.seconds_per_bit={per_iteration_s / 1000!r}", "compute.max_iterations=unset"]
    if refused:
        with pytest.raises(ScenarioError, match=r"leaves room for 1.1e\+09 iterations, more than 1e\+09"):
            fleet(*overrides)
    else:
        fleet(*overrides)


@pytest.mark.parametrize(
    ("slow", "named"),
    [
        ([3], "before device 3 has done its fewest"),
        ([1, 3], "before devices 1, 3 have done their fewest"),
        (range(MOST_NAMED), f"{MOST_NAMED - 2}, {MOST_NAMED - 1} have done their"),
        (range(MOST_NAMED + 2), f"{MOST_NAMED - 2}, {MOST_NAMED - 1} and 2 more have done their"),
    ],
)
def test_devices_that_are_too_slow_are_named(slow, named):
    device = fleet(devices=30)
    late = np.isin(np.arange(30), list(slow))
    per_bit_s = jnp.where(late, 1.0, device.seconds_per_bit)
    with pytest.raises(ScenarioError) as told:
        refuse_slow(dataclasses.replace(device, seconds_per_bit=per_bit_s))
    assert named in str(told.value)


def test_the_gain_of_a_moved_device_follows_its_distance():
    device = dataclasses.replace(fleet(), path_gain=jnp.asarray(1e-8))
    way = Motion(*map(jnp.asarray, (40.0, 20.0, 120.0, 20.0, 10.0)))  # 40 m away, and 10 m/s outward
    gain, distance_m = moved(device, way, 3.5, jnp.asarray(4))
    gone_m = 10.0 * 4 * float(device.deadline_s)
    assert float(distance_m) == pytest.approx(40.0 + gone_m)
    assert float(gain) == pytest.approx(1e-8 * (40.0 / (40.0 + gone_m)) ** 3.5, rel=1e-6)
