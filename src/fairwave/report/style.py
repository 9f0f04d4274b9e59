"""How figures look, and how numbers are written."""

from __future__ import annotations

import math
from typing import Any

from fairwave.metrics.intervals import Interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (Okabe and Ito), then three more."""
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = "osD^vPX*h"
LIMITS_COLOUR = "#7f7f7f"
LIMITS_LABEL = "the paper's axis"
STATIC: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "fairwave", "svg.fonttype": "none", "pdf.fonttype": 42}
"""Matplotlib settings of figures meant for print: text stays text, equal data give equal files."""


def with_interval(value: Interval, digits: int = 3, scale: float = 1.0, unit: str = "") -> str:
    """A mean and its interval, such as '0.454 ± 0.012'; a change in per cent has its sign, and both ends.

    Both ends are written, too, where they are not equally far from the mean, such as '0.97 (0.91 to 0.99)'.
    """
    if math.isnan(value.mean):
        return "no value"
    if "%" in unit:
        ends = "" if math.isnan(value.low) else f" ({value.low:+.{digits}f} to {value.high:+.{digits}f})"
        return f"{value.mean:+.{digits}f}{unit}{ends}"
    low, high = (value.mean - value.low) * scale, (value.high - value.mean) * scale
    if math.isnan(low):
        return f"{value.mean * scale:.{digits}f}{unit}"
    if f"{low:.{digits}f}" == f"{high:.{digits}f}":
        return f"{value.mean * scale:.{digits}f} ± {low:.{digits}f}{unit}"
    return f"{value.mean * scale:.{digits}f} ({value.low * scale:.{digits}f} to {value.high * scale:.{digits}f}){unit}"


def counted(number: int, thing: str) -> str:
    """A number of things, such as '1 round' or '2 rounds'."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def percent_text(share: float) -> str:
    """A share in per cent, such as '60.8 %'."""
    return f"{100.0 * share:.1f} %"


def percent_interval(share: Interval) -> str:
    """A share in per cent, with both ends of its interval where it has one."""
    ends = "" if math.isnan(share.low) else f" ({100.0 * share.low:.1f} to {100.0 * share.high:.1f} %)"
    return percent_text(share.mean) + ends


def change_text(per_cent: float) -> str:
    """A change with its sign; never -100 %, which would leave nothing at all."""
    return "down by more than 99.9 %" if per_cent < -99.95 else f"{per_cent:+.1f} %"


def points_text(difference: float) -> str:
    """A difference of shares in percentage points."""
    points = f"{100.0 * difference:+.1f}"
    return f"{points.lstrip('+-') if float(points) == 0.0 else points} points"


def energy_text(energy_j: float) -> str:
    """An energy with three digits, in J or mJ; what is next to nothing is told as that."""
    if abs(energy_j) < 1e-6:
        return "0 mJ" if energy_j == 0.0 else "< 0.001 mJ"
    value, unit = (energy_j, "J") if abs(energy_j) >= 1.0 else (energy_j * 1e3, "mJ")
    return f"{value:.0f} {unit}" if abs(value) >= 99.95 else f"{value:#.3g} {unit}"
