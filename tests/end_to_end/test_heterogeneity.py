"""Runs of cells that change, as a user meets them."""

from __future__ import annotations

import pytest
import xarray as xr

from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import fairwave

TINY = [*as_options(SOFTMAX_MNIST), "--schemes", "least_energy"]


@pytest.mark.slow
def test_a_run_whose_batteries_run_out_says_so(capsys, monkeypatch, tmp_path):
    folder = tmp_path / "drained"
    changes = (
        "radio.payload_bits='1 kbit'",
        "compute.min_iterations=40",
        "utility.required_iterations=40",
        "compute.battery_capacity_j=[0.03, 0.05, 0.05]",
        "radio.doppler_hz='0.1 Hz'",
        "cell.mobility={law='radial', max_speed_m_per_s='1.5 m/s', near_m=30, far_m=250}",
    )
    sets = [part for change in changes for part in ("--set", change)]
    said = fairwave(capsys, monkeypatch, "run", "small", *TINY, *sets, "--rounds", "6", "--out", str(folder))
    assert said.code == 0
    ended = "least_energy with seed 0 ended after 2 of 6 rounds: no battery is charged enough"
    assert ended in said.out and "compute.battery_capacity_j" in said.out
    assert fairwave(capsys, monkeypatch, "export", str(folder), "--to", str(tmp_path / "r.nc")).code == 0
    results = xr.load_dataset(tmp_path / "r.nc").squeeze(("scheme", "seed"))
    assert results["participating"].sum("round").values.tolist() == [1, 2, 2]
    assert (abs(results["distance_now_m"].diff("round")) <= 1.5 * 0.75).all()


@pytest.mark.slow
def test_idle_rounds_can_be_stored_and_reported(capsys, monkeypatch, tmp_path):
    """Nobody is there in rounds 2 and 3."""
    folder = tmp_path / "idle"
    sets = ["--set", "cell.arrival_round=[1, 4, 4]", "--set", "cell.departure_round=[1, 4, 4]"]
    said = fairwave(capsys, monkeypatch, "run", "small", *TINY, *sets, "--rounds", "6", "--out", str(folder))
    assert said.code == 0 and "ended after 4 of 6 rounds: every device has left (cell.departure_round)" in said.out
    assert fairwave(capsys, monkeypatch, "resume", str(folder)).code == 0
    assert fairwave(capsys, monkeypatch, "report", str(folder)).code == 0
    assert fairwave(capsys, monkeypatch, "privacy", str(folder)).code == 0
