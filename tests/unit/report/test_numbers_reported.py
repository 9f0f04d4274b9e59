"""Reports of models that predict numbers show their error, and no accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
import xarray as xr

from fairwave.cli.progress import Board
from fairwave.report.cheating_section import cheating_section
from fairwave.report.device_losses import device_losses_section
from fairwave.report.figure_data import panels
from fairwave.report.learning_sheet import learning_sheet
from fairwave.report.sweep_page import write_sweep
from fairwave.report.sweep_points import Axis, measured, write_points
from fairwave.report.tables import pieces_html
from fairwave.runs.order import Track
from fairwave.runs.session import TrackProgress
from tests.made_up_results import DIMS, made_up_results

SHAPE = (1, 2, 4, 3)
ERRORS = np.array([[4.0, 3.0, 2.5, 2.0], [4.0, 3.0, 2.5, 1.0]])


@pytest.fixture
def results() -> xr.Dataset:
    """Two seeds of one scheme, whose errors end at 2 and at 1; one device cheats."""
    cheating = np.zeros(SHAPE, bool)
    cheating[..., 0] = True
    made = made_up_results(
        ["proposed"],
        seeds=2,
        path_loss_db=[60.0, 70.0, 80.0],
        loss=np.ones(SHAPE),
        energy_j=np.full(SHAPE, 0.1),
        cheating=cheating,
        received_accuracy=np.full(SHAPE, np.nan),
    )
    return made.assign(test_accuracy=np.nan * made["test_accuracy"], test_rmse=(DIMS[:3], ERRORS[None]))


def test_figures_and_tables_show_the_error(results):
    last = panels(results)[-1]
    assert (last.key, last.title, last.y_label) == ("rmse", "Test RMSE", "test RMSE")
    assert last.series[0].y.tolist() == [4.0, 3.0, 2.5, 1.5]
    sheet = learning_sheet(results)
    assert sheet.heads[-1] == "test RMSE, last" and sheet.rows[0][-1].startswith("1.500")
    for page in map(pieces_html, (cheating_section(results), device_losses_section(results))):
        assert "<table" in page and "accuracy" not in page and "no value" not in page
    classes = results.drop_vars("test_rmse").assign(received_accuracy=xr.full_like(results["loss"], 0.9))
    for page in map(pieces_html, (cheating_section(classes), device_losses_section(classes))):
        assert "accuracy" in page


def test_sweeps_show_the_error(results, tmp_path: Path):
    name = "learning.learning_rate"
    rows = [row for value in (0.1, 0.2) for row in measured(f"at-{value}", {name: value}, results)]
    assert [row.test_rmse for row in rows] == [2.0, 1.0, 2.0, 1.0]
    page = write_sweep(rows, [Axis(name)], "", tmp_path).read_text("utf-8")
    assert "test RMSE is the access point" in page and "test accuracy" not in page
    write_points(rows, tmp_path)
    assert pyarrow.csv.read_csv(tmp_path / "points.csv").column("test_rmse").to_pylist() == [2.0, 1.0, 2.0, 1.0]
    classes = list(measured("run", {name: 0.1}, results.drop_vars("test_rmse")))
    write_points(classes, tmp_path)
    assert "test_rmse" not in pyarrow.csv.read_csv(tmp_path / "points.csv").column_names


def test_progress_shows_the_error():
    board, numbers = Board(4), TrackProgress(Track("proposed", 0), 2, 0.5, float("nan"), 0.01, 1.25)
    board.take(numbers)
    assert "loss 0.500, test RMSE 1.250, energy std 10.00 mJ" in board.line(numbers)
    assert [column.header for column in board.table().columns][4] == "test RMSE"
    not_evaluated = TrackProgress(Track("proposed", 0), 3, 0.5, float("nan"), 0.01, float("nan"))
    assert "test RMSE ," in board.line(not_evaluated)
    classes = TrackProgress(Track("proposed", 1), 2, 0.5, 0.75, 0.01)
    assert "test accuracy 0.750" in board.line(classes)
