"""Runs beside each other on a terminal, and tables as files."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from fairwave.errors import OutputError
from fairwave.metrics.intervals import Interval
from fairwave.metrics.track_state import TrackState
from fairwave.report.figure_data import Panel, Series
from fairwave.report.proved_epsilon import ProvedEpsilon
from fairwave.report.run_differences import cautions, order_differences, result_rows, scenario_differences
from fairwave.report.run_list import list_heads, scheme_lines
from fairwave.report.run_summary import RunSummary, SchemeSummary
from fairwave.report.sheet_files import sheet_latex, write_figure_data, write_sheets
from fairwave.report.tables import Sheet, sheet_html
from fairwave.report.text_table import text_table
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario

PROVED = ProvedEpsilon(1.5, 1e-5, "a record of a device", noisy=False, seeded=False)
NONE = ProvedEpsilon(None, 1e-5, "nothing", noisy=True, seeded=True)


def value(mean: float) -> Interval:
    return Interval(mean, math.nan, math.nan, 1)


def run(accuracy: float, energy_j: float, proved: ProvedEpsilon = NONE, **changes) -> RunSummary:
    state = TrackState("proposed", 0, changes.pop("rounds", 12), 12)
    scheme = SchemeSummary("proposed", value(accuracy), value(energy_j), value(energy_j / 10), (state,), proved)
    return RunSummary(
        **{"classes": 10, **changes}, schemes=(scheme,), subject="proposed", against=None, base=None, seeds=1, devices=4
    )


def test_lines_of_a_list_fit_and_mark_what_is_missing():
    (line,) = scheme_lines(run(0.608, 0.25, PROVED))
    assert line.split() == ["proposed", "12", "of", "12", "60.8", "%", "250.0", "25.00", "1.500"]
    (short,) = scheme_lines(run(math.nan, math.nan, rounds=5))
    assert short.split() == ["proposed", "5", "of", "12", "*", "-", "-", "-", "none"]
    assert len(list_heads()) <= 80 and len(line) <= 80
    (error,) = scheme_lines(run(1.5, 0.25, classes=None))
    assert "RMSE 1.5" in error


def test_differences_of_scenarios_are_named():
    one = load_scenario("small")
    other = load_scenario("small", ["cell.num_devices=5", "run.target_loss=3"])
    assert scenario_differences(one, one) == []
    assert scenario_differences(one, other) == [("cell.num_devices", "4", "5"), ("run.target_loss", "-", "3.0")]
    orders = (Order(one, seeds=(0,), rounds=3), Order(one, seeds=(0, 1), rounds=3))
    assert order_differences(*orders) == [("seeds", "0", "0, 1")]


def test_results_are_compared_quantity_by_quantity():
    rows = {row[1]: row[2:] for row in result_rows(run(0.6, 0.2), run(0.75, 0.3, PROVED))}
    assert rows["test accuracy (%)"] == ("60.0", "75.0", "+15.0 points")
    assert rows["mean energy (mJ)"] == ("200.0", "300.0", "+50.0 %")
    assert rows["proved epsilon"] == ("none proved", "1.500", "")
    assert any("one seed" in line for line in cautions(run(0.6, 0.2), run(0.7, 0.2)))
    assert any("Rounds are missing" in line for line in cautions(run(0.6, 0.2), run(0.7, 0.2, rounds=3)))


def test_a_text_table_is_cut_to_80_columns_where_it_may_be():
    lines = text_table(("name", "value"), [("x" * 30, "y" * 90), ("a", "1")], cut=(1,))
    assert max(map(len, lines)) == 80 and lines[1].endswith("…") and "x" * 30 in lines[1]
    assert text_table(("scheme", "mJ"), [("a", "1.5"), ("b", "10.5")]) == [
        "scheme    mJ",
        "a        1.5",
        "b       10.5",
    ]


ROWS = [("max_power", "1.0 ± 0.5"), ("b", "2")]
SHEET = Sheet("energy", "Energy & fairness", "100 % of it_all", ("scheme", "mean (mJ)"), ROWS)


def test_tables_as_latex_and_csv(tmp_path):
    assert sheet_latex(SHEET) == (
        "\\begin{table}\n  \\centering\n  \\caption{Energy \\& fairness. 100 \\% of it\\_all}\n"
        "  \\begin{tabular}{lr}\n    \\toprule\n    scheme & mean (mJ) \\\\\n    \\midrule\n"
        "    max\\_power & 1.0 $\\pm$ 0.5 \\\\\n    b & 2 \\\\\n    \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
    )
    write_sheets([SHEET], tmp_path)
    with (tmp_path / "energy.csv").open() as stream:
        assert list(csv.reader(stream)) == [["scheme", "mean (mJ)"], ["max_power", "1.0 ± 0.5"], ["b", "2"]]
    assert (tmp_path / "energy.tex").read_text() == sheet_latex(SHEET)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OutputError, match="choose a writable folder"):
        write_sheets([SHEET], blocked)


def test_figures_as_csv_have_both_ends_of_bands_and_none_below_zero(tmp_path):
    line = Series("a", np.array([1, 2]), np.array([1.0, np.nan]), np.array([3.0, 1.0]))
    bare = Series("b", np.array([1]), np.array([5.0]))
    write_figure_data([Panel("loss", "Loss", "round", "loss", "", [line, bare])], tmp_path)
    with (tmp_path / "loss.csv").open() as stream:
        assert list(csv.reader(stream)) == [
            ["line", "round", "loss", "low", "high"],
            ["a", "1", "1.0", "0.0", "4.0"],
            ["a", "2", "", "", ""],
            ["b", "1", "5.0", "", ""],
        ]


def test_a_table_on_a_page_says_what_its_cells_are():
    page = sheet_html(SHEET, "tables")
    assert '<th scope="col">scheme</th><th scope="col" class="number">mean (mJ)</th>' in page
    assert '<th scope="row">max_power</th><td class="number">1.0 ± 0.5</td>' in page.replace(" &plusmn; ", " ± ")
    assert 'href="tables/energy.csv"' in page and 'href="tables/energy.tex"' in page
    assert "<h3>Energy &amp; fairness</h3>" in page and "href" not in sheet_html(SHEET)
