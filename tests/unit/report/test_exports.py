"""Exports say of every column whether the run's privacy mode covers it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import xarray as xr

from fairwave.extensions import PRIVACY_MODES
from fairwave.report.run_export import DIMS, export_results, with_marks
from tests.end_to_end.command_line import fairwave
from tests.statements import ROOT

SHAPE = (1, 1, 2, 3)
WHY = "no: This is computed from training data without noise."


@pytest.fixture
def results() -> xr.Dataset:
    per_device = {name: (DIMS, np.ones(SHAPE)) for name in ("loss", "update_norm", "deviation", "energy_j")}
    held = {"samples": (("seed", "device", "class"), np.ones((1, 3, 1))), "global_loss": (DIMS[:3], np.ones(SHAPE[:3]))}
    laid_out = {name: (("seed", "device"), np.ones((1, 3))) for name in ("distance_m", "path_loss_db")}
    axes = {"scheme": ["proposed"], "seed": [0], "round": [1, 2], "device": [0, 1, 2]}
    return xr.Dataset(per_device | held, coords=axes | laid_out)


@pytest.mark.parametrize(
    ("mode", "norm"), [("provable", None), ("device", "no: This is computed from updates without noise.")]
)
def test_columns_that_no_proof_covers_are_marked(tmp_path: Path, results: xr.Dataset, mode: str, norm: str | None):
    marked = with_marks(results, PRIVACY_MODES[mode].not_private())
    assert all("private" not in results[name].attrs for name in results.variables)
    export_results(marked, tmp_path / "r.nc")
    export_results(marked, tmp_path / "r.parquet")
    expected = {"loss": WHY, "global_loss": WHY, "update_norm": norm, "deviation": None, "energy_j": None}
    with xr.open_dataset(tmp_path / "r.nc") as read:
        assert {name: read[name].attrs.get("private") for name in expected} == expected
        assert read["samples"].attrs["private"].startswith("no: ")
    schema = pyarrow.parquet.read_schema(tmp_path / "r.parquet")
    found = {name: (schema.field(name).metadata or {}).get(b"private") for name in expected}
    assert {name: value and value.decode() for name, value in found.items()} == expected


def test_a_csv_file_has_no_place_for_marks_so_that_they_are_said(tmp_path: Path, capsys, monkeypatch):
    shutil.copy(ROOT / "tests" / "data" / "run-format-6.sqlite", tmp_path / "run.sqlite")
    said = fairwave(capsys, monkeypatch, "export", str(tmp_path), "--to", str(tmp_path / "r.csv"))
    (line,) = [line for line in said.err.splitlines() if line.startswith("not private in mode 'paper': ")]
    named = line.split(": ", 1)[1].split(", ")
    header = (tmp_path / "r.csv").read_text().splitlines()[0].replace('"', "").split(",")
    assert said.code == 0 and {"loss", "deviation", "global_loss"} <= set(named) <= set(header)
