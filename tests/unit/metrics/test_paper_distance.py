"""Distances to what the paper publishes, worked by hand."""

from __future__ import annotations

import math

import pytest

from fairwave.metrics.paper_distance import CAP, FIGURES, NUMBERS, PUBLISHED, Member, term
from fairwave.metrics.published import LOSS_STD, MEAN_ENERGY, Stated

EXACT = {name: (stated.value,) for name, stated in NUMBERS.items()} | {
    name: (axis.low / axis.per_unit, axis.high / axis.per_unit) for name, axis in FIGURES.items()
}


def member(**ours: tuple[float, ...]) -> Member:
    return Member({}, {**EXACT, **ours}, {})


@pytest.mark.parametrize(
    ("ours", "size"),
    [
        (0.103, 0.0),
        (0.103 * 1.2, 1.0),
        (0.103 / 1.2, 1.0),
        (0.103 * 1.44, 2.0),
        (0.0, CAP),
        (math.inf, CAP),
        (1e9, CAP),
    ],
)
def test_a_number_is_compared_by_its_ratio(ours, size):
    assert term(LOSS_STD, (ours,)) == pytest.approx(size)


def test_digits_set_the_factor():
    assert term(MEAN_ENERGY, (1.0 - 0.096,)) == pytest.approx(math.log(0.904 / 0.8783) / math.log(1.005))
    assert term(Stated("", "", 2.0, 10.0), (20.0,)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("low_j", "high_j", "size"),
    [
        (0.2, 0.3, 0.0),
        (0.175, 0.379, 1.0),  # 4 mJ above an axis of 200 mJ: 0.02 of it
        (0.171, 0.377, 1.0),  # the worse end counts, not the sum
        (0.163, 0.3, 3.0),
        (0.25, 0.586, CAP),
        (math.nan, math.nan, CAP),
        (0.2, math.inf, CAP),
    ],
)
def test_an_axis_is_compared_by_what_is_outside(low_j, high_j, size):
    assert term(FIGURES["figure_2"], (low_j, high_j)) == pytest.approx(size)


def test_the_distance_is_the_root_mean_square_of_ten_terms():
    assert len(PUBLISHED) == 10
    exact = member()
    assert exact.distance == pytest.approx(0.0, abs=1e-9) and exact.fits
    near = member(loss_std=(0.103 * 1.2**0.9,), figure_2=(0.175, 0.3782))
    assert near.distance == pytest.approx(math.sqrt((0.9**2 + 0.8**2) / 10)) and near.fits
    far = member(loss_std=(0.103 * 1.44,), mean_energy=(0.5,))
    assert far.distance == pytest.approx(math.sqrt((2.0**2 + CAP**2) / 10))
    assert far.misses == ["mean_energy", "loss_std"] and not far.fits


def test_one_miss_can_be_nearer_than_a_fit():
    """All ten at 0.9 fit; one at 2 does not, and has the lesser distance."""
    at = {name: (stated.value * stated.factor**0.9,) for name, stated in NUMBERS.items()} | {
        name: (axis.low / axis.per_unit, (axis.high + 0.9 * 0.02 * (axis.high - axis.low)) / axis.per_unit)
        for name, axis in FIGURES.items()
    }
    fitting, missing = Member({}, at, {}), member(loss_std=(0.103 * 1.44,))
    assert fitting.fits and not missing.fits and missing.distance < fitting.distance == pytest.approx(0.9)
