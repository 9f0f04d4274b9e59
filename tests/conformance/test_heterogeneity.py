"""The scenarios in the documentation are scenarios, and do what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave.engine.battery import capacities_j
from fairwave.engine.presence import presence
from fairwave.policy.fleet import fleet
from fairwave.scenario.loading import preset_names
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.scenario.show import to_toml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "heterogeneity.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"\n## ([^\n]*)\n(?:(?!\n## ).)*?```toml\n(.*?)```", TEXT, flags=re.DOTALL))


def scenario(folder: Path, text: str) -> Scenario:
    shutil.copy(ROOT / "examples" / "fleet.csv", folder)
    (folder / "mine.toml").write_text(text, "utf-8")
    return fairwave.load_scenario(folder / "mine.toml")


@pytest.mark.parametrize("title", SNIPPETS)
def test_every_snippet_loads_and_shows_itself(title, tmp_path):
    chosen = scenario(tmp_path, SNIPPETS[title])
    assert chosen != fairwave.load_scenario("paper-clean")
    assert scenario(tmp_path, to_toml(chosen)) == chosen
    values = DeviceValues(chosen)
    members = fleet(chosen, values)  # reads the lists and files
    capacities_j(values, members.device, chosen.learning, np.full(chosen.cell.num_devices, 60))
    presence(values)


def test_the_documentation_covers_what_there_is(tmp_path):
    assert len(SNIPPETS) == TEXT.count("```toml") == TEXT.count("\n## ") == 10
    varied = scenario(tmp_path, SNIPPETS["Hardware, bandwidth and distance"])
    device = fleet(varied, DeviceValues(varied)).device
    for values in (device.path_gain, device.bandwidth_hz, device.compute_power_w, device.seconds_per_bit):
        assert np.unique(values).size > 1
    for name in (
        "doppler_hz",
        "mobility",
        "battery_capacity_j",
        "arrival_round",
        "departure_round",
        "late_rounds",
        "label_noise",
        "input_gain",
    ):
        assert f"\n{name} = " in TEXT


def test_no_preset_has_any_of_it():
    for name in preset_names():
        preset = fairwave.load_scenario(name)
        assert preset.cell.mobility.law == "none" and preset.radio.doppler_hz is None
        assert preset.cell.arrival_round is None and preset.cell.departure_round is None
        assert preset.compute.battery_capacity_j is None
        assert preset.cell.straggler_probability == 0.0 and preset.learning.late_rounds == 0
