"""Figures for the screen: described as JSON, drawn by the page itself (`page.js`) without any network."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fairwave.report.figure_data import Limits, Panel, Series
from fairwave.report.style import COLOURS, DASHES, LIMITS_COLOUR, LIMITS_LABEL

FEW_POINTS = 50
MOST_TICKS = 8
DIGITS = 6
"""Significant digits of what is drawn, which keeps pages small."""


def panel_html(panel: Panel, prefix: str) -> str:
    """A panel as a piece of a page, where its name and the prefix are its id; for who cannot see it, in words.

    Lines that have the same colour, where there are more than colours, differ in their dashes.
    """
    traces: list[dict[str, Any]] = []
    for index, line in enumerate(panel.series):
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
        traces += _traces(panel, line, colour, dash)
    if panel.limits is not None:
        traces.append(_paper_axis(panel.limits))
    spec = {
        "traces": traces,
        "x": {"title": panel.x_label, "type": "log" if panel.log_x else "-", **_whole_ticks(panel)},
        "y": {"title": panel.y_label},
    }
    key = html.escape(f"{prefix}{panel.key}")
    content = json.dumps(spec, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="drawing" id="{key}" role="img" aria-label="{html.escape(in_words(panel))}"></div>'
        f'<script type="application/json" data-figure="{key}">{content}</script>'
    )


def in_words(panel: Panel) -> str:
    """What a figure shows, for people who hear it read: where every line begins and ends, and how far it reaches."""
    said = [f"{panel.title}: {panel.y_label} against {panel.x_label}."]
    for line in panel.series:
        known = np.flatnonzero(np.isfinite(line.y))
        if not known.size:
            said.append(f"{line.label}: no value.")
            continue
        first, last = known[0], known[-1]
        ends = f"{line.y[first]:.3g} at {_number(line.x[first])}"
        if last != first:
            ends += f" to {line.y[last]:.3g} at {_number(line.x[last])}"
            ends += f", between {np.nanmin(line.y[known]):.3g} and {np.nanmax(line.y[known]):.3g}"
        said.append(f"{line.label}: {ends}.")
    return " ".join(said)


def _traces(panel: Panel, line: Series, colour: str, dash: str) -> list[dict[str, Any]]:
    """A line with its band or bars."""
    over_rounds, ends = panel.over_rounds, line.ends()
    drawn: dict[str, Any] = {
        "type": "scatter",
        "x": _plain(line.x),
        "y": _plain(line.y),
        "mode": "lines" if over_rounds and len(line.x) > 1 else "lines+markers" if panel.joined else "markers",
        "name": line.label,
        "legendgroup": line.label,
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 7 if panel.joined or len(line.x) <= FEW_POINTS else 4},
    }
    if ends is None:
        return [drawn]
    low, high = ends
    if over_rounds:
        return [_band(line, low, high, colour), drawn]
    up, down = _plain(high - line.y), _plain(line.y - low)
    return [drawn | {"error_y": {"type": "data", "array": up, "arrayminus": down, "symmetric": False, "thickness": 1}}]


def _band(line: Series, low: np.ndarray, high: np.ndarray, colour: str) -> dict[str, Any]:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    known = np.isfinite(low) & np.isfinite(high)
    x = line.x[known]
    return {
        "type": "scatter",
        "x": _plain(np.concatenate([x, x[::-1]])),
        "y": _plain(np.concatenate([high[known], low[known][::-1]])),
        "mode": "lines",
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},0.15)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "legendgroup": line.label,
        "showlegend": False,
    }


def _paper_axis(limits: Limits) -> dict[str, Any]:
    """Both ends of the paper's axis, as two lines of one trace."""
    return {
        "type": "scatter",
        "x": [limits.start, limits.end, None, limits.start, limits.end],
        "y": [limits.low, limits.low, None, limits.high, limits.high],
        "mode": "lines",
        "name": LIMITS_LABEL,
        "line": {"color": LIMITS_COLOUR, "width": 1, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _whole_ticks(panel: Panel) -> dict[str, float]:
    """Where ticks are, on an axis of rounds: at whole numbers, and not too many."""
    if not panel.over_rounds:
        return {}
    last = max((float(line.x[-1]) for line in panel.series if len(line.x)), default=1.0)
    rough = max(1.0, last / MOST_TICKS)
    power = 10.0 ** math.floor(math.log10(rough))
    return {"tick0": 0, "dtick": max(1.0, next(step * power for step in (1, 2, 5, 10) if step * power >= rough))}


def _plain(values: Iterable[Any]) -> list[Any]:
    """Values as JSON has them, rounded; none where there is no number."""
    return [_rounded(value) for value in np.asarray(values).tolist()]


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)
