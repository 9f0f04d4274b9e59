"""Numbers to predict, from a CSV folder to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from tests.builders import WEATHER, as_options, weather_folder
from tests.end_to_end.command_line import fairwave

SMALL = as_options(WEATHER)


def least_squares_error(folder: Path) -> float:
    train, test = (np.loadtxt(folder / name, delimiter=",", skiprows=1) for name in ("train.csv", "test.csv"))
    fitted = np.linalg.lstsq(np.column_stack([train[:, 1:], np.ones(len(train))]), train[:, 0], rcond=None)[0]
    missed = np.column_stack([test[:, 1:], np.ones(len(test))]) @ fitted - test[:, 0]
    return float(np.sqrt(np.mean(missed**2)))


def test_a_csv_folder_of_numbers_from_run_to_report(capsys, monkeypatch, tmp_path):
    source, folder = weather_folder(tmp_path / "weather"), tmp_path / "run"
    asked = ("run", "small", *SMALL, "--set", f"data.source={source}", "--schemes", "no_privacy", "--out", str(folder))
    said = fairwave(capsys, monkeypatch, *asked, "--rounds", "4")
    assert said.code == 0, said.err
    assert "RMSE" in said.out and "accuracy" not in said.out
    assert "test RMSE" in said.err and "test accuracy" not in said.err
    assert fairwave(capsys, monkeypatch, "report", str(folder)).code == 0
    page = (folder / "report.html").read_text("utf-8")
    assert "test RMSE, last" in page and "Root mean squared error" in page
    before_the_scenario = page.split("<summary>Scenario</summary>")[0].lower()
    for absent in ("test accuracy", "who holds what", "work and accuracy"):
        assert absent not in before_the_scenario
    assert fairwave(capsys, monkeypatch, "export", str(folder), "--to", str(tmp_path / "r.csv")).code == 0
    rows = pyarrow.csv.read_csv(tmp_path / "r.csv").to_pydict()
    error = rows["test_rmse"][-1]
    assert error == pytest.approx(least_squares_error(source), rel=0.1)
    assert rows["test_rmse"][0] < 0.5 * 20.0 and rows["received_loss"][0] > 100 * rows["loss"][-1]


def test_wrong_kinds_are_one_line_on_the_terminal(capsys, monkeypatch, tmp_path):
    source = f"data.source={weather_folder(tmp_path / 'weather')}"
    named = fairwave(capsys, monkeypatch, "run", "small", *SMALL, "--set", "data.source=mnist", "--out", str(tmp_path))
    classes = fairwave(capsys, monkeypatch, "run", "small", "--set", source, "--out", str(tmp_path / "run"))
    audited = fairwave(capsys, monkeypatch, "audit", "fair", *SMALL, "--set", "learning.features=none")
    for said, what in (
        (named, "the labels of 'mnist' are classes"),
        (classes, "set data.target to 'number'"),
        (audited, "the audit of devices makes up records that have classes"),
    ):
        assert said.code != 0 and what in said.err
        assert len(said.err.strip().splitlines()) == 1, said.err
    assert not (tmp_path / "run").exists()
