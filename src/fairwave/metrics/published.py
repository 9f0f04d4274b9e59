"""What the paper publishes of its simulations: stated numbers, the axes of its figures, and statements about curves.

The data files of the figures are not part of its source, so that axes and stated numbers are all there is to compare
with. The paper does not say how it averaged, so each plausible way has a name here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Curve: TypeAlias = NDArray[np.float64]
"""One value per device, in the order of their path loss."""
Curves: TypeAlias = Mapping[str, Curve]
"""A scheme's curves, by the name of the variable."""
History: TypeAlias = NDArray[np.float64]
"""A value per round and device; NaN where the device did not take part."""

PAPER_ROUNDS = 200
"""Rounds that the paper simulated."""
SHOWN_ROUNDS = 50
"""Rounds of the paper's figure 1; it simulated 200."""

GapAveraging = Literal["ratio_of_means", "mean_of_gaps", "last_round"]
SpreadAveraging = Literal["mean", "peak", "last_round"]
EnergySpread = Literal["of_means", "mean_of_rounds"]
GAP_AVERAGING: tuple[GapAveraging, ...] = ("ratio_of_means", "mean_of_gaps", "last_round")
SPREAD_AVERAGING: tuple[SpreadAveraging, ...] = ("mean", "peak", "last_round")
ENERGY_SPREAD: tuple[EnergySpread, ...] = ("of_means", "mean_of_rounds")


@dataclasses.dataclass(frozen=True)
class Stated:
    """A number that the paper states, as a ratio or a plain value, and by what factor ours may differ and still agree.

    The factors are ours: twice or half the std of energy that is left, half a point of mean energy, a point of loss,
    and a fifth of what the paper calls "around 0.103". They are far wider than the printed digits, because another
    seed moves the numbers by about as much.
    """

    name: str
    printed: str
    value: float
    factor: float

    def distance(self, ours: float) -> float:
        """How far a ratio or value of ours is from what the paper states; 1 is where agreement ends.

        Infinite for a value that is not known, or not positive.
        """
        known = math.isfinite(ours) and ours > 0.0
        return abs(math.log(ours / self.value)) / math.log(self.factor) if known else math.inf

    def agrees(self, ours: float) -> bool:
        """Whether it is near enough."""
        return self.distance(ours) <= 1.0


ENERGY_STD = Stated("std of device energy, over the benchmark's", "-99 %", 0.01, 2.0)
MEAN_ENERGY = Stated("mean device energy, over the benchmark's", "-12.17 %", 0.8783, 1.005)
MEAN_LOSS = Stated("mean training loss, over the benchmark's", "+6.26 %", 1.0626, 1.01)
LOSS_STD = Stated("std of training loss across devices", "0.103", 0.103, 1.2)
STATED = (ENERGY_STD, MEAN_ENERGY, MEAN_LOSS, LOSS_STD)


@dataclasses.dataclass(frozen=True)
class Axis:
    """The vertical axis of a figure: both curves must lie on it to be drawn."""

    figure: str
    variable: str
    unit: str
    per_unit: float
    """Ours, in SI units, times this is in the figure's unit."""
    low: float
    high: float


LOSS_AXIS = Axis("1", "loss", "", 1.0, 0.4, 2.4)
AXES = (
    LOSS_AXIS,
    Axis("2", "energy_j", "mJ", 1e3, 175.0, 375.0),
    Axis("3a", "compute_energy_j", "mJ", 1e3, 46.0, 58.0),
    Axis("3b", "transmit_energy_j", "mJ", 1e3, 125.0, 325.0),
    Axis("4a", "local_iterations", "", 1.0, 80.0, 100.0),
    Axis("4b", "uplink_rate_bps", "Mbit/s", 1e-6, 3.5, 5.75),
)
BY_PATH_LOSS = tuple(axis.variable for axis in AXES if axis is not LOSS_AXIS)


def axis_excess(axis: Axis, values: NDArray[np.float64]) -> float:
    """By how much values leave an axis at the worse end, over its height; 0 if they stay on it."""
    drawn = axis.per_unit * values[np.isfinite(values)]
    if not drawn.size:
        return float("nan")
    outside = max(axis.low - float(drawn.min()), float(drawn.max()) - axis.high, 0.0)
    return outside / (axis.high - axis.low)


def loss_gap(how: GapAveraging, proposed: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    """Mean loss of the proposed scheme over the benchmark's, from one mean over devices per round."""
    match how:
        case "ratio_of_means":
            return float(proposed.mean() / base.mean())
        case "mean_of_gaps":
            return float((proposed / base).mean())
        case "last_round":
            return float(proposed[-1] / base[-1])


def loss_std(how: SpreadAveraging, loss: History) -> float:
    """Std of the loss across devices."""
    each = np.nanstd(loss, axis=1)
    match how:
        case "mean":
            return float(each.mean())
        case "peak":
            return float(each.max())
        case "last_round":
            return float(each[-1])


def energy_std(how: EnergySpread, energy_j: History) -> float:
    """Std of energy across devices: of their means over rounds, or the mean over rounds of the std in each."""
    if how == "of_means":
        return float(np.nanstd(np.nanmean(energy_j, axis=0)))
    return float(np.nanmean(np.nanstd(energy_j, axis=1)))


@dataclasses.dataclass(frozen=True)
class Statement:
    """What the paper says of its curves in words, and a test of it on curves of the proposed scheme and a benchmark."""

    name: str
    text: str
    holds: Callable[[Curves, Curves], bool]
    told: str
    """The numbers behind the answer, as a text with places for them."""
    numbers: Callable[[Curves, Curves], tuple[float, ...]]
    """These numbers, from the same curves."""

    def evidence(self, ours: Curves, base: Curves) -> str:
        """The numbers behind the answer, in words."""
        return self.told.format(*self.numbers(ours, base))


def _rises(curve: Curve) -> float:
    """How much a curve rises from the nearest device to the farthest."""
    return float(curve[-1] - curve[0])


def _ends(curve: Curve) -> tuple[float, float]:
    """A curve at the nearest device and at the farthest."""
    return float(curve[0]), float(curve[-1])


def _largest_share(curves: Curves) -> float:
    """The largest computing energy of a device over its transmission energy."""
    return float((curves["compute_energy_j"] / curves["transmit_energy_j"]).max())


STATEMENTS = (
    Statement(
        "benchmark energy rises",
        "the benchmark's total energy increases with path loss",
        lambda _, base: bool((np.diff(base["energy_j"]) > 0.0).all()),
        told="from device to device by {:.1f} to {:.1f} mJ",
        numbers=lambda _, base: (
            1e3 * float(np.diff(base["energy_j"]).min()),
            1e3 * float(np.diff(base["energy_j"]).max()),
        ),
    ),
    Statement(
        "proposed energy is flat",
        "the proposed scheme's total energy remains almost flat (its range is at most 5 % of its mean)",
        lambda ours, _: bool(np.ptp(ours["energy_j"]) <= 0.05 * ours["energy_j"].mean()),
        told="a range of {:.1f} mJ at a mean of {:.1f} mJ",
        numbers=lambda ours, _: (1e3 * float(np.ptp(ours["energy_j"])), 1e3 * float(ours["energy_j"].mean())),
    ),
    Statement(
        "computing costs less",
        "computing energy is significantly less than transmission energy (less than half, for every device of both)",
        lambda ours, base: max(map(_largest_share, (ours, base))) < 0.5,
        told="at most {:.2f} of it for proposed, {:.2f} for the benchmark",
        numbers=lambda ours, base: (_largest_share(ours), _largest_share(base)),
    ),
    Statement(
        "computing energy falls",
        "computing energy decreases with path loss for both, more for the proposed scheme",
        lambda ours, base: _rises(ours["compute_energy_j"]) < _rises(base["compute_energy_j"]) < 0.0,
        told="proposed {:+.2f} mJ, benchmark {:+.2f} mJ",
        numbers=lambda ours, base: (1e3 * _rises(ours["compute_energy_j"]), 1e3 * _rises(base["compute_energy_j"])),
    ),
    Statement(
        "transmission energy rises",
        "transmission energy increases with path loss, for the proposed scheme only slightly in comparison (by less "
        "than half)",
        lambda ours, base: 0.0 < _rises(ours["transmit_energy_j"]) < 0.5 * _rises(base["transmit_energy_j"]),
        told="proposed {:+.1f} mJ, benchmark {:+.1f} mJ",
        numbers=lambda ours, base: (1e3 * _rises(ours["transmit_energy_j"]), 1e3 * _rises(base["transmit_energy_j"])),
    ),
    Statement(
        "iterations fall",
        "iterations decrease with path loss, and the farthest device does fewer in the proposed scheme",
        lambda ours, base: (
            _rises(ours["local_iterations"]) < 0.0
            and _rises(base["local_iterations"]) < 0.0
            and bool(ours["local_iterations"][-1] < base["local_iterations"][-1])
        ),
        told="proposed {:.1f} to {:.1f}, benchmark {:.1f} to {:.1f}",
        numbers=lambda ours, base: (*_ends(ours["local_iterations"]), *_ends(base["local_iterations"])),
    ),
    Statement(
        "rates fall",
        "the rate decreases with path loss for both",
        lambda ours, base: _rises(ours["uplink_rate_bps"]) < 0.0 and _rises(base["uplink_rate_bps"]) < 0.0,
        told="proposed {:+.3f} Mbit/s, benchmark {:+.3f} Mbit/s",
        numbers=lambda ours, base: (1e-6 * _rises(ours["uplink_rate_bps"]), 1e-6 * _rises(base["uplink_rate_bps"])),
    ),
    Statement(
        "near devices send faster",
        "the nearest device sends at a little higher rate than in the benchmark",
        lambda ours, base: bool(ours["uplink_rate_bps"][0] > base["uplink_rate_bps"][0]),
        told="proposed {:.3f} Mbit/s, benchmark {:.3f} Mbit/s",
        numbers=lambda ours, base: (1e-6 * ours["uplink_rate_bps"][0], 1e-6 * base["uplink_rate_bps"][0]),
    ),
    Statement(
        "far devices send slower",
        "the farthest device sends at a much lower rate than in the benchmark (by more than 5 %)",
        lambda ours, base: bool(ours["uplink_rate_bps"][-1] < 0.95 * base["uplink_rate_bps"][-1]),
        told="proposed {:.3f} Mbit/s, benchmark {:.3f} Mbit/s",
        numbers=lambda ours, base: (1e-6 * ours["uplink_rate_bps"][-1], 1e-6 * base["uplink_rate_bps"][-1]),
    ),
)


SIMILAR_SPREADS = "the std of the loss across devices is very similar for both (within a factor of 1.5)"


def similar_spreads(ours: float, base: float) -> bool:
    """Whether "the standard deviation in loss across devices is very similar for both": within a factor of 1.5."""
    return max(ours, base) <= 1.5 * min(ours, base)
