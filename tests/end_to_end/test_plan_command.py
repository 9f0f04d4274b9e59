"""`fairwave plan` and `fairwave scenario` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet
import pytest
import xarray as xr

import fairwave as package
from fairwave.extensions import RULES
from tests.end_to_end.command_line import fairwave

COLUMNS = {
    "device",
    "distance_m",
    "path_loss_db",
    "optimal_iterations",
    "local_iterations",
    "transmit_power_w",
    "uplink_rate_bps",
    "compute_time_s",
    "upload_time_s",
    "compute_energy_j",
    "transmit_energy_j",
    "energy_j",
    "optimal_energy_j",
    "utility",
    "optimal_utility",
    "case",
    "outage_fraction",
    "failed_upload_fraction",
}


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    return lambda *arguments: fairwave(capsys, monkeypatch, *arguments)


def test_a_device_that_is_too_slow_or_too_far_is_a_row_with_its_reason(run):
    """One device that can never take part does not refuse the plan of a fleet."""
    far = "cell.placement={law='list', distance_m=[50, 125, '200 km']}"
    overrides = ("--set", "cell.num_devices=3", "--set", "compute.min_iterations=[10, 1000, 10]", "--set", far)
    outcome = run("plan", "paper", "--no-fading", "--format", "json", *overrides)
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)["policies"]["proposed"]["devices"]
    assert [row["case"] for row in rows] == ["interior", "outage", "outage"]
    assert [row["reason"] for row in rows] == [
        "",
        "its fewest iterations take longer than the deadline",
        "full power does not carry its upload in time, in any draw",
    ]
    assert rows[0]["energy_j"] == pytest.approx(0.25, rel=0.01)
    assert "its fewest iterations" in " ".join(run("plan", "paper", "--no-fading", *overrides).out.split())


def test_json_has_every_column_and_the_regression_values(run):
    outcome = run("plan", "paper", "--no-fading", "--format", "json")
    assert outcome.code == 0 and outcome.err == ""
    plan = json.loads(outcome.out)["policies"]
    far = plan["proposed"]["devices"][-1]
    assert set(far) == COLUMNS
    assert (round(far["optimal_iterations"], 1), round(far["optimal_energy_j"] * 1e3, 1)) == (81.5, 250.8)
    assert far["local_iterations"] == 81 and far["case"] == "interior"
    assert set(plan["proposed"]["fairness"]) == {"mean", "std", "cv", "max_min", "jain", "gini"}
    assert plan["proposed"]["fairness"]["std"] < 0.02 * plan["max_power"]["fairness"]["std"]


def test_table_names_policies_and_fairness(run):
    outcome = run("plan", "small", "--no-fading", "--policies", "all")
    assert outcome.code == 0
    assert all(name in outcome.out for name in RULES)
    assert "Jain" in outcome.out and "interior" in outcome.out


def test_a_narrow_terminal_gets_the_essential_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run("plan", "small", "--no-fading", "--battery", "2 Wh")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "interior" in outcome.out and "max_power" in outcome.out and "iterations" in outcome.out


def test_csv_and_files_agree(run, tmp_path: Path):
    outcome = run("plan", "small", "--draws", "20", "--format", "csv", "--out", str(tmp_path / "plan.parquet"))
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    table = pyarrow.parquet.read_table(tmp_path / "plan.parquet").to_pylist()
    assert len(rows) == len(table) == 2 * 4
    for ours, theirs in zip(rows, table, strict=True):
        assert ours["case"] == theirs["case"]
        assert float(ours["energy_j"]) == pytest.approx(theirs["energy_j"], rel=1e-12)
    for ending in ("csv", "json", "nc"):
        assert run("plan", "small", "--draws", "20", "--out", str(tmp_path / f"plan.{ending}")).code == 0
    with xr.open_dataset(tmp_path / "plan.nc") as stored:
        energy = stored["energy_j"].sel(policy="max_power").values
    assert energy.tolist() == pytest.approx([row["energy_j"] for row in table if row["policy"] == "max_power"])


def test_plot_is_a_figure_with_labels(run, tmp_path: Path):
    figure = tmp_path / "plan.svg"
    outcome = run("plan", "paper", "--no-fading", "--plot", str(figure))
    assert outcome.code == 0 and str(figure) in outcome.err
    text = "".join(ElementTree.parse(figure).getroot().itertext())
    for label in ("path loss (dB)", "energy per round (mJ)", "local iterations", "uplink rate (Mbit/s)", "proposed"):
        assert label in text
    again = tmp_path / "again.svg"
    run("plan", "paper", "--no-fading", "--plot", str(again))
    assert again.read_bytes() == figure.read_bytes()


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [("--out", "plan.csv", "cannot be written"), ("--plot", "plan.svg", "cannot be written")],
)
def test_a_result_that_cannot_be_written_says_so(run, tmp_path: Path, option, name, said):
    (tmp_path / name).mkdir()  # a folder where the file should be
    outcome = run("plan", "small", "--no-fading", option, str(tmp_path / name))
    assert outcome.code == 4
    assert said in outcome.err and "Traceback" not in outcome.err


def test_battery_life_is_capacity_over_energy(run):
    plan = json.loads(run("plan", "paper", "--no-fading", "--battery", "2 Wh", "--format", "json").out)
    for device in plan["policies"]["proposed"]["devices"]:
        assert device["battery_life_rounds"] == pytest.approx(7200 / device["energy_j"])


def test_a_fleet_from_a_file_with_its_own_names(run, tmp_path: Path):
    fleet = tmp_path / "fleet.csv"
    fleet.write_text(
        "device,distance_m,max_transmit_power_w,max_iterations\nroof,50,1,40\ncellar,200,0.001,60\n", "utf-8"
    )
    plan = json.loads(run("plan", "--devices", str(fleet), "--no-fading", "--format", "json").out)["policies"][
        "proposed"
    ]
    roof, cellar = plan["devices"]
    assert (roof["device"], roof["case"], roof["local_iterations"]) == ("roof", "max_iterations", 40)
    assert (cellar["device"], cellar["outage_fraction"]) == ("cellar", 0.0)
    assert cellar["case"] == "max_power"


def test_a_device_that_never_reaches_the_cell_is_null(run, tmp_path: Path):
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("distance_m\n50\n9000\n", "utf-8")
    plan = json.loads(run("plan", "--devices", str(fleet), "--no-fading", "--format", "json").out)["policies"][
        "proposed"
    ]
    assert plan["devices"][1]["case"] == "outage"
    assert plan["devices"][1]["energy_j"] is None
    assert plan["fairness"]["max_min"] == 1.0


def test_distance_and_loss_belong_together(run, tmp_path: Path):
    """Devices drawn in a disc are planned where they are said to stand: loss grows as 40 dB per decade."""
    arguments = ("--set", "cell.placement={law='disc', radius_m=300}", "--no-fading", "--format", "json")
    devices = json.loads(run("plan", "paper", *arguments).out)["policies"]["proposed"]["devices"]
    offset = [device["path_loss_db"] - 40 * np.log10(device["distance_m"]) for device in devices]
    np.testing.assert_allclose(offset, offset[0], atol=1e-9)


def test_names_are_text_not_markup(run, tmp_path: Path):
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("device, distance_m\n[red]x[/red],50\n[/bad],60\n", "utf-8")
    outcome = run("plan", "--devices", str(fleet), "--no-fading")
    assert outcome.code == 0
    assert "[red]x[/red]" in outcome.out and "[/bad]" in outcome.out


def test_a_full_disk_is_one_line():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fairwave", "scenario", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_ctrl_c_ends_a_long_plan_with_one_line():
    """The signal is sent while tiles run on worker threads: progress shows that they do."""
    program = (
        "import sys, fairwave.planner.plan as p, fairwave.planner.batch as b\n"
        "tell = b._tell\n"
        "b._tell = lambda *a: (print('working', flush=True), tell(*a))\n"
        "sys.argv = ['fairwave', 'plan', 'paper', '--set', 'cell.num_devices=200000', '--draws', '5000']\n"
        "from fairwave.cli.main import main\nmain()\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for _ in range(3):
            assert running.stdout is not None and running.stdout.readline() == "working\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert said == "fairwave: interrupted\n"


def test_scenario_commands(run):
    listed = run("scenario", "list").out
    assert all(name in listed for name in ("paper", "paper-clean", "fair-mlp", "small"))
    shown = run("scenario", "show", "paper", "--set", "radio.bandwidth_hz=1 MHz").out
    assert "bandwidth_hz = 1000000.0" in shown
    assert "radio" in json.loads(run("scenario", "schema").out)["properties"]


def test_help_teaches(run):
    assert "fairwave plan paper --no-fading" in run("plan", "--help").out
    assert run("--version").out.startswith("fairwave ")


def test_python_call_returns_labelled_results():
    plan = package.plan("small", ["proposed", "priced"], draws=30)
    assert dict(plan.sizes) == {"policy": 2, "device": 4, "case_name": 6}
    assert plan["energy_j"].sel(policy="priced", device=0) > 0
    np.testing.assert_allclose(plan["case_fraction"].sum("case_name"), 1.0, rtol=1e-6)


def test_one_draw_is_a_draw(run):
    one, none = package.plan("small", draws=1), package.plan("small", fading=False)
    assert (one.attrs["fading"], none.attrs["fading"]) == ("rayleigh", "none")
    assert not np.allclose(one["uplink_rate_bps"], none["uplink_rate_bps"], rtol=0.01)
    assert "proposed (one channel draw, rayleigh fading)" in run("plan", "small", "--draws", "1").out
    assert "proposed (no fading)" in run("plan", "small", "--no-fading").out


def test_draws_are_paired_and_reproducible():
    alone = package.plan("small", ["priced"], draws=30)
    together = package.plan("small", ["proposed", "priced"], draws=30)
    xr.testing.assert_equal(alone.sel(policy="priced"), together.sel(policy="priced"))


def test_tiling_changes_nothing(monkeypatch):
    """Few lanes force many tiles over devices and draws; the averages are the same."""
    from fairwave.planner import batch

    scenario = package.load_scenario("paper", ["cell.num_devices=37"])
    whole = package.plan(scenario, ["proposed"], draws=23)
    monkeypatch.setattr(batch, "CPU_LANES", 8)
    tiled = package.plan(scenario, ["proposed"], draws=23)
    xr.testing.assert_allclose(whole, tiled, rtol=1e-12)


def test_imperfect_knowledge_costs_energy_and_keeps_the_target():
    """With a wrong estimate at most the wanted share of uploads fails; without the back-off about half would."""
    sure = package.plan("paper", ["max_power"], draws=2_000)
    careful = package.load_scenario("paper", ["radio.channel_error_std=0.2", "radio.outage_probability=0.1"])
    plan = package.plan(careful, ["max_power"], draws=2_000)
    failed = float(plan["failed_upload_fraction"].mean())
    assert 0.0 < failed <= 0.1 + 5 * np.sqrt(0.1 * 0.9 / 20_000)
    assert float(plan["uplink_rate_bps"].mean()) < float(sure["uplink_rate_bps"].mean())
    assert float(sure["failed_upload_fraction"].max()) == 0.0


def test_local_accuracy_appears_when_the_loss_is_known_to_be_convex():
    convex = package.load_scenario("small", ["learning.smoothness=4", "learning.strong_convexity=0.5"])
    plan = package.plan(convex, ["proposed"], fading=False)
    factor = 1 - 2 * 0.5 * 0.01 + 0.5 * 4 * 0.01**2
    np.testing.assert_allclose(plan["local_accuracy"], factor ** plan["local_iterations"], rtol=1e-9)
    assert "local_accuracy" not in package.plan("small", ["proposed"], fading=False)
