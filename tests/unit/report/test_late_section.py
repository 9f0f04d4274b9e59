"""The report's account of late updates, on results whose answers are known."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from fairwave.report.late_section import HEADS, late_row, late_section
from fairwave.report.run_table import run_table
from fairwave.report.tables import pieces_html
from tests.made_up_results import made_up_results

SHAPE = (2, 1, 3, 4)


def results(**others: np.ndarray):
    return made_up_results(
        ["proposed", "max_power"],
        seeds=1,
        path_loss_db=[70.0, 80, 90, 95],
        loss=np.ones(SHAPE),
        energy_j=np.full(SHAPE, 0.2),
        **others,
    )


def late_results():
    """Under the first scheme, four updates come late: one is used after a round, one after two, one is dropped."""
    late, age, weight, dropped = (np.zeros(SHAPE) for _ in range(4))
    late[0, 0, 0, :3] = late[0, 0, 2, 3] = 1
    age[0, 0, 1, 0], age[0, 0, 2, 1], dropped[0, 0, 2, 2] = 1, 2, 1
    weight[0, 0, 1, 0], weight[0, 0, 2, 1] = 0.5, 0.25
    asked = age == 0  # whoever is waited for is not asked
    in_time = asked & (late == 0)
    return results(
        late=late, late_age=age, late_weight=weight, late_dropped=dropped, participating=asked, delivered=in_time
    )


def test_late_updates_are_counted_by_what_became_of_them():
    assert late_row(late_results(), "proposed") == ("proposed", "4", "2", "1", "1", "1.50", "0.38")
    assert late_row(late_results(), "max_power") == ("max_power", "0", "0", "0", "0", "", "")
    page = pieces_html(late_section(late_results()))
    assert all(f">{head}<" in page for head in HEADS) and ">1.50<" in page


def test_a_run_that_drops_them_has_no_such_table():
    assert late_section(results()) == []


def test_updates_that_are_used_late_count_as_used():
    console = Console(width=200)
    with console.capture() as said:
        console.print(run_table(late_results()))
    proposed = next(line for line in said.get().splitlines() if "proposed" in line)
    assert " 80.00%" in proposed  # of ten that were asked for, six in time and two late
