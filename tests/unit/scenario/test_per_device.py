from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fairwave.errors import ScenarioError
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.per_device import DISTANCE, LABEL, DeviceValues, per_device_fields, with_device_file
from fairwave.wireless.hardware import distances_m


def test_the_papers_per_device_symbols_may_differ():
    assert {
        "bandwidth_hz",
        "max_transmit_power_w",
        "circuit_power_w",
        "compute_power_w",
        "bits_per_iteration",
        "seconds_per_bit",
        "min_iterations",
        "effort_scale",
        "effort_decay_j",
    } <= set(per_device_fields())
    assert not {"epsilon", "carrier_hz", "learning_rate", "iteration_price_j"} & set(per_device_fields())


def test_scalar_list_and_column_give_the_same_fleet(tmp_path: Path):
    file = tmp_path / "power.csv"
    file.write_text("watt\n0.05\n0.05\n", "utf-8")
    two = ["cell.num_devices=2"]
    forms = ["'50 mW'", "[0.05, '50 mW']", f"{{file='{file}', column='watt'}}"]
    read = [
        DeviceValues(load_scenario("paper", [*two, f"compute.compute_power_w={form}"]))("compute_power_w")
        for form in forms
    ]
    assert [value.ndim for value in read] == [0, 1, 1]
    for value in read:
        np.testing.assert_allclose(np.broadcast_to(value, 2), 0.05)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_device_file_is_a_fleet(tmp_path: Path, ending: str):
    table = pa.table({"device": ["near", "far"], "distance_m": [50.0, 200.0], "max_transmit_power_w": [0.5, 1.0]})
    path = tmp_path / f"fleet.{ending}"
    if ending == "csv":
        path.write_text("device,distance_m,max_transmit_power_w\nnear,50,0.5\nfar,200,1\n", "utf-8")
    else:
        pyarrow.parquet.write_table(table, path)
    scenario, labels = with_device_file(load_scenario("paper"), path)
    values = DeviceValues(scenario)
    assert labels == ["near", "far"]
    assert scenario.cell.num_devices == 2
    assert distances_m(scenario, values).tolist() == [50.0, 200.0]
    assert values("max_transmit_power_w").tolist() == [0.5, 1.0]
    assert values("compute_power_w").ndim == 0


def test_a_file_named_in_a_scenario_lies_beside_it(tmp_path: Path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "where.csv").write_text("distance_m\n10\n20\n", "utf-8")
    (tmp_path / "deep" / "mine.toml").write_text(
        'extends = "paper"\n[cell]\nnum_devices = 2\nplacement = { law = "file", file = "where.csv" }\n', "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    scenario = load_scenario("deep/mine.toml")
    assert distances_m(scenario, DeviceValues(scenario)).tolist() == [10.0, 20.0]


def test_wrong_length_is_refused():
    scenario = load_scenario("paper", ["compute.compute_power_w=[0.1, 0.2]"])
    with pytest.raises(ScenarioError, match="2 values for 10 devices"):
        DeviceValues(scenario)("compute_power_w")


def test_the_page_on_plans_lists_all_columns():
    page = (Path(__file__).parents[3] / "docs" / "plan.md").read_text("utf-8")
    table = page.partition("| About | Columns |")[2].partition("\n\n")[0]
    assert {*re.findall(r"`(\w+)`", table), "device"} == {*per_device_fields(), DISTANCE, LABEL}
