"""How figures look, and how numbers are written."""

from __future__ import annotations

import math
from typing import Any

from fairwave.metrics.intervals import Interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (Okabe and Ito), then three more."""
MARKERS = "osD^vPX*h"
LIMITS_COLOUR = "#7f7f7f"
LIMITS_LABEL = "the paper's axis"
STATIC: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "fairwave", "svg.fonttype": "none", "pdf.fonttype": 42}
"""Matplotlib settings of figures meant for print: text stays text, equal data give equal files."""


def with_interval(value: Interval, digits: int = 3, scale: float = 1.0, unit: str = "") -> str:
    """A mean and its interval, such as '0.454 ± 0.012'; a change in per cent has its sign, and both ends."""
    if math.isnan(value.mean):
        return "no value"
    if "%" in unit:
        ends = "" if math.isnan(value.low) else f" ({value.low:+.{digits}f} to {value.high:+.{digits}f})"
        return f"{value.mean:+.{digits}f}{unit}{ends}"
    spread = "" if math.isnan(value.low) else f" ± {0.5 * (value.high - value.low) * scale:.{digits}f}"
    return f"{value.mean * scale:.{digits}f}{spread}{unit}"


def counted(number: int, thing: str) -> str:
    """A number of things, such as '1 round' or '2 rounds'."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
