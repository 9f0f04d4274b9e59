"""Tables in terminals of every width: nothing is cut without a word."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from fairwave.planner.plan import plan
from fairwave.planner.summary import energy_fairness
from fairwave.report.fitting_table import FittingTable
from fairwave.report.plan_table import plan_tables
from fairwave.report.run_table import run_table
from tests.made_up_results import made_up_results

TABLE = FittingTable("title", ["name", "first\nhead", "second head"], [("proposed", "1.0", "2.0")])


def results():
    """Three seeds, so that there are intervals."""
    draw, shape = np.random.default_rng(1), (2, 3, 3, 4)
    return made_up_results(
        ["proposed", "max_power"],
        seeds=3,
        path_loss_db=[70.0, 80, 90, 95],
        loss=draw.random(shape),
        energy_j=draw.random(shape),
    )


def printed(what: object, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, legacy_windows=False)
    console.print(what)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


def test_columns_that_do_not_fit_are_named():
    assert "not shown" not in printed(TABLE, 40)
    narrow = printed(TABLE, 25)
    assert (
        "first" in narrow
        and "2.0" not in narrow
        and "not shown on a narrow terminal: second head" in " ".join(narrow.split())
    )


def test_intervals_go_below_their_means_before_a_column_is_left_out():
    table = FittingTable("title", ["name", "first", "second"], [("proposed", "1.0 (0.5 to 1.6)", "2.0 (1.5 to 2.6)")])
    assert "1.0 (0.5 to 1.6)" in printed(table, 60)
    narrow = printed(table, 44)
    assert "not shown" not in narrow
    means, ends = (line for line in narrow.splitlines() if "0 " in line or "(" in line)
    assert "proposed" in means and "1.0" in means and "2.0" in means
    assert "(0.5 to 1.6)" in ends and "(1.5 to 2.6)" in ends
    narrower = printed(table, 35)
    assert "not shown" not in narrower and "(1.5 │\n" in narrower and "to 2.6) │\n" in narrower


@pytest.mark.parametrize("width", [80, 60, 40])
def test_a_run_fits_its_terminal_or_says_what_it_leaves_out(width):
    text = printed(run_table(results()).renderables[0], width)
    assert "…" not in text and "not shown on a narrow terminal" in text
    assert "updates used" in " ".join(text.split())


def test_a_run_shows_the_loss_of_both_kinds_of_model():
    heads = run_table(results()).renderables[0].heads
    assert heads[1:3] == ["last\nloss", "global\nloss"]


def test_a_plan_says_what_eighty_columns_leave_out():
    made = plan("small", fading=False)
    narrow = " ".join(printed(plan_tables(made, energy_fairness(made), 5, 80), 80).split())
    assert (
        "Not shown on a narrow terminal: distance (m), compute (ms)" in narrow
        and "Use --format csv to see all columns" in narrow
    )
    assert "Left out" not in printed(plan_tables(made, energy_fairness(made), 5, 145), 145)
