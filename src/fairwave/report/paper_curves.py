"""Where our curves leave the axes of the paper's figures, and where they begin and end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.intervals import interval
from fairwave.metrics.published import AXES, LOSS_AXIS, STATED, Axis, axis_excess
from fairwave.report.averaging import last_shown_round, shown_rounds
from fairwave.report.figure_data import figure_title
from fairwave.report.headlines import Headline, subject
from fairwave.report.statistics import in_order_of_path_loss, labelled, mean_loss, mean_over_rounds
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

if TYPE_CHECKING:
    import xarray as xr


def curves(results: xr.Dataset, axis: Axis) -> xr.DataArray:
    """What a figure of the paper shows, in its unit, per scheme and seed: along rounds, or devices by path loss."""
    if axis is LOSS_AXIS:
        values = mean_loss(shown_rounds(results))
    else:
        values = in_order_of_path_loss(results, mean_over_rounds(results, axis.variable))
    return axis.per_unit * values.transpose("scheme", "seed", ...)


def axes_sheet(results: xr.Dataset) -> Sheet:
    """The range of every curve beside the axis that the paper drew its own on."""
    names = [str(name) for name in results["scheme"].values]
    rows = []
    for axis in AXES:
        means = curves(results, axis).mean("seed")
        rows.append(
            (_titled(axis), _axis_range(axis), *(_range_on(axis, means.sel(scheme=name).values) for name in names))
        )
    caption = (
        "From the least to the largest value of each curve, mean over seeds; figure 1 up to round "
        f"{last_shown_round(results)}. What is outside the paper's axis is given as a share of the axis's height."
    )
    return Sheet(
        "axes", "The paper's axes and our curves", caption, ("figure", "the paper's axis", *_heads(results)), rows
    )


def values_sheet(results: xr.Dataset, found: list[Headline]) -> Sheet:
    """All that the paper publishes of its curves, beside the same of ours."""
    names = [str(name) for name in results["scheme"].values]
    rows: list[tuple[str, ...]] = []
    for axis in AXES:
        places = ("first round", f"round {last_shown_round(results)}")
        places = places if axis is LOSS_AXIS else ("nearest device", "farthest device")
        each = curves(results, axis)
        for place, index in zip(places, (0, -1), strict=True):
            ours = (interval(each.sel(scheme=name).values[:, index]) for name in names)
            rows.append(
                (
                    f"{_titled(axis)}, {place}",
                    f"on an axis {_axis_range(axis)}",
                    *(with_interval(one, _digits(axis)) for one in ours),
                )
            )
    for stated in STATED:
        texts = {each.base or "proposed": each.text() for each in found if each.stated is stated}
        rows.append((subject(stated), stated.printed, *(texts.get(name, "") for name in names)))
    caption = (
        "The paper's source does not include the data files of its figures, so that its curves cannot be digitised: it "
        "has the range of their axes and the numbers in its text. Ours are means over seeds; numbers of the text are "
        "those of the proposed scheme, against the benchmark of the column where they compare."
    )
    return Sheet("values", "What the paper publishes, beside ours", caption, ("", "the paper", *_heads(results)), rows)


def _heads(results: xr.Dataset) -> list[str]:
    return [labelled(results, str(name)) for name in results["scheme"].values]


def _titled(axis: Axis) -> str:
    return figure_title(axis) + (f" ({axis.unit})" if axis.unit else "")


def _axis_range(axis: Axis) -> str:
    return f"{axis.low:g} to {axis.high:g}"


def _digits(axis: Axis) -> int:
    """Decimals that show a thousandth of the axis."""
    return max(0, 3 - math.floor(math.log10(axis.high - axis.low)))


def _range_on(axis: Axis, drawn: np.ndarray) -> str:
    """The range of a curve, given in the unit of the axis, and how far it leaves it."""
    excess = axis_excess(axis, drawn / axis.per_unit)
    if math.isnan(excess):
        return "no value"
    digits = _digits(axis)
    text = f"{np.nanmin(drawn):.{digits}f} to {np.nanmax(drawn):.{digits}f}"
    return f"{text}; {100.0 * excess:.1f} % outside" if excess > 0.0 else text
