"""The scenario that is audited keeps what leaves a device, and drops what decides how much it works."""

from __future__ import annotations

from fairwave.audit.audited_cell import Change, audited
from fairwave.policy.fleet import physical_devices
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.per_device import DeviceValues


def test_one_step_is_one_step_whatever_accuracy_is_asked_for() -> None:
    constants = ("learning.smoothness=1", "learning.strong_convexity=0.05", "learning.local_accuracy=0.9")
    asked = load_scenario("fair-mlp", constants)
    under_audit = audited(asked, 0, Change(steps=1))
    assert float(physical_devices(under_audit, DeviceValues(under_audit)).min_iterations) == 1.0
