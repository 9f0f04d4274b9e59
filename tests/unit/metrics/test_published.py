"""What the paper publishes: numbers as printed, and each statement on curves that keep it and on curves that do not."""

from __future__ import annotations

import numpy as np
import pytest

from fairwave.metrics.published import (
    AXES,
    ENERGY_STD,
    LOSS_AXIS,
    LOSS_STD,
    MEAN_ENERGY,
    MEAN_LOSS,
    STATED,
    STATEMENTS,
    Axis,
    axis_excess,
    energy_std,
    loss_gap,
    loss_std,
    similar_spreads,
)

OURS = {
    "energy_j": [0.250, 0.251, 0.250],
    "compute_energy_j": [0.057, 0.052, 0.047],
    "transmit_energy_j": [0.193, 0.199, 0.203],
    "local_iterations": [98.0, 90.0, 81.0],
    "uplink_rate_bps": [5.6e6, 4.4e6, 3.3e6],
}
BASE = {
    "energy_j": [0.230, 0.280, 0.330],
    "compute_energy_j": [0.056, 0.053, 0.049],
    "transmit_energy_j": [0.174, 0.227, 0.281],
    "local_iterations": [97.0, 91.0, 84.0],
    "uplink_rate_bps": [5.5e6, 4.5e6, 3.6e6],
}
"""Two sets of curves for which all that the paper says is so."""
BROKEN = [
    ("benchmark energy rises", {}, {"energy_j": [0.23, 0.34, 0.33]}, "from device to device by -10.0 to 110.0 mJ"),
    ("proposed energy is flat", {"energy_j": [0.24, 0.25, 0.26]}, {}, "a range of 20.0 mJ at a mean of 250.0 mJ"),
    (
        "computing costs less",
        {"compute_energy_j": [0.055, 0.052, 0.050], "transmit_energy_j": [0.1, 0.2, 0.2]},
        {"compute_energy_j": [0.05, 0.05, 0.05], "transmit_energy_j": [0.2, 0.2, 0.25]},
        "at most 0.55 of it for proposed, 0.25 for the benchmark",
    ),
    (
        "computing energy falls",
        {"compute_energy_j": [0.055, 0.052, 0.050]},
        {},
        "proposed -5.00 mJ, benchmark -7.00 mJ",
    ),
    (
        "computing energy falls",
        {},
        {"compute_energy_j": [0.050, 0.053, 0.051]},
        "proposed -10.00 mJ, benchmark +1.00 mJ",
    ),
    (
        "transmission energy rises",
        {"transmit_energy_j": [0.19, 0.2, 0.25]},
        {},
        "proposed +60.0 mJ, benchmark +107.0 mJ",
    ),
    (
        "transmission energy rises",
        {"transmit_energy_j": [0.2, 0.2, 0.19]},
        {},
        "proposed -10.0 mJ, benchmark +107.0 mJ",
    ),
    ("iterations fall", {"local_iterations": [98, 90, 85]}, {}, "proposed 98.0 to 85.0, benchmark 97.0 to 84.0"),
    ("iterations fall", {"local_iterations": [80, 90, 81]}, {}, "proposed 80.0 to 81.0, benchmark 97.0 to 84.0"),
    ("iterations fall", {}, {"local_iterations": [83, 91, 84]}, "proposed 98.0 to 81.0, benchmark 83.0 to 84.0"),
    ("rates fall", {"uplink_rate_bps": [5.6e6, 5e6, 5.7e6]}, {}, "proposed +0.100 Mbit/s, benchmark -1.900 Mbit/s"),
    ("rates fall", {}, {"uplink_rate_bps": [3.5e6, 5e6, 3.6e6]}, "proposed -2.300 Mbit/s, benchmark +0.100 Mbit/s"),
    (
        "near devices send faster",
        {},
        {"uplink_rate_bps": [5.8e6, 4.5e6, 3.6e6]},
        "proposed 5.600 Mbit/s, benchmark 5.800 Mbit/s",
    ),
    (
        "far devices send slower",
        {},
        {"uplink_rate_bps": [5.5e6, 4.5e6, 3.4e6]},
        "proposed 3.300 Mbit/s, benchmark 3.400 Mbit/s",
    ),
]


def curves(values):
    return {name: np.array(each, float) for name, each in values.items()}


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_every_statement_holds_for_curves_like_the_papers(statement):
    assert statement.holds(curves(OURS), curves(BASE))


@pytest.mark.parametrize(("name", "ours", "base", "numbers"), BROKEN)
def test_a_statement_fails_for_curves_that_break_it_and_no_other_number_is_shown(name, ours, base, numbers):
    statement = next(each for each in STATEMENTS if each.name == name)
    pair = curves(OURS | ours), curves(BASE | base)
    assert not statement.holds(*pair)
    assert statement.evidence(*pair) == numbers


def test_every_statement_is_broken_once():
    assert {name for name, *_ in BROKEN} == {statement.name for statement in STATEMENTS}


def test_spreads_are_similar_within_half_as_much_again():
    assert similar_spreads(0.30, 0.21) and similar_spreads(0.21, 0.30)
    assert not similar_spreads(0.33, 0.21) and not similar_spreads(0.21, 0.33)


@pytest.mark.parametrize(
    ("stated", "inside", "outside"),
    [
        (ENERGY_STD, (0.0051, 0.0199), (0.0049, 0.0201)),
        (MEAN_ENERGY, (0.8740, 0.8826), (0.8738, 0.8828)),
        (MEAN_LOSS, (1.0521, 1.0732), (1.0520, 1.0733)),
        (LOSS_STD, (0.0859, 0.1235), (0.0858, 0.1237)),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else None,
)
def test_ours_agrees_within_the_printed_digits(stated, inside, outside):
    assert all(map(stated.agrees, inside)) and not any(map(stated.agrees, outside))
    assert not stated.agrees(float("nan"))


def test_printed_numbers_are_the_values():
    for stated in STATED:
        number = float(stated.printed.removesuffix(" %"))
        assert stated.value == pytest.approx(1 + number / 100 if "%" in stated.printed else number)


def test_the_part_outside_an_axis_is_a_share_of_its_height():
    axis = Axis("9", "x", "mJ", 1e3, 100.0, 300.0)
    assert axis_excess(axis, np.array([0.1, 0.2, 0.3])) == 0.0
    assert axis_excess(axis, np.array([0.2, 0.34])) == pytest.approx(0.2)
    assert axis_excess(axis, np.array([0.05, 0.31, np.nan])) == pytest.approx(0.25)
    assert np.isnan(axis_excess(axis, np.array([np.nan])))
    assert {each.figure for each in AXES} == {"1", "2", "3a", "3b", "4a", "4b"} and LOSS_AXIS.figure == "1"


def test_loss_gaps_by_hand():
    ours, base = np.array([2.0, 1.0, 0.6]), np.array([2.0, 0.8, 0.5])
    assert loss_gap("ratio_of_means", ours, base) == pytest.approx(3.6 / 3.3)
    assert loss_gap("mean_of_gaps", ours, base) == pytest.approx((1.0 + 1.25 + 1.2) / 3)
    assert loss_gap("last_round", ours, base) == pytest.approx(1.2)


def test_loss_spreads_by_hand():
    history = np.array([[1.0, 3.0, np.nan], [1.0, 1.0, 1.0], [0.5, 0.5, 1.0]])
    last = np.sqrt(2) / 6
    assert loss_std("mean", history) == pytest.approx((1.0 + 0.0 + last) / 3)
    assert loss_std("peak", history) == pytest.approx(1.0)
    assert loss_std("last_round", history) == pytest.approx(last)


def test_energy_spreads_by_hand():
    """Two devices that take turns in paying 1 and 3: equal on average, and never equal."""
    history = np.array([[1.0, 3.0], [3.0, 1.0]])
    assert energy_std("of_means", history) == 0.0
    assert energy_std("mean_of_rounds", history) == 1.0
