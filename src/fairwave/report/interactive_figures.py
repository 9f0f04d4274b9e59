"""Figures for the screen: plotly, drawn by the page itself without any network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.report.figure_data import Limits, Panel, Series
from fairwave.report.style import COLOURS, LIMITS_COLOUR, LIMITS_LABEL

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import xarray as xr

HEIGHT = 420
FEW_POINTS = 50


def panel_html(panel: Panel, prefix: str) -> str:
    """A panel as a piece of a page, where its name and the prefix are its id."""
    import plotly.graph_objects as go

    figure = go.Figure()
    over_rounds = panel.over_rounds
    for index, line in enumerate(panel.series):
        colour = COLOURS[index % len(COLOURS)]
        if over_rounds and line.spread is not None:
            figure.add_trace(_band(line, line.spread, colour))
        bars = None if over_rounds or line.spread is None else {"type": "data", "array": line.spread, "thickness": 1}
        mode = "lines" if over_rounds and len(line.x) > 1 else "lines+markers" if panel.joined else "markers"
        size = 7 if panel.joined or len(line.x) <= FEW_POINTS else 4
        figure.add_trace(
            go.Scatter(
                x=line.x,
                y=line.y,
                error_y=bars,
                mode=mode,
                name=line.label,
                legendgroup=line.label,
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": size},
            )
        )
    if panel.limits is not None:
        figure.add_trace(_paper_axis(panel.limits))
    if panel.log_x:
        figure.update_xaxes(type="log")
    return _html(figure, f"{prefix}{panel.key}", panel.x_label, panel.y_label)


def holdings_html(results: xr.Dataset, prefix: str) -> str:
    """Who holds what: samples of each class on each device, for the first seed."""
    import plotly.graph_objects as go

    samples = results["samples"].isel(seed=0).values
    figure = go.Figure(
        go.Heatmap(
            z=samples.T,
            colorscale="Blues",
            zmin=0,
            zmax=int(samples.max()),
            colorbar={"title": "samples"},
            hovertemplate=_HOVER,
        )
    )
    return _html(figure, f"{prefix}holdings", "device", "class")


def heat_map_html(
    rows: Sequence[str], columns: Sequence[str], values: np.ndarray, texts: Sequence[Sequence[str]], key: str, name: str
) -> str:
    """A table in colours: blue below zero, red above, with a text in every cell."""
    import plotly.graph_objects as go

    reach = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=list(columns),
            y=list(rows),
            text=texts,
            texttemplate="%{text}",
            colorscale="RdBu_r",
            zmin=-min(reach, 100.0),
            zmax=min(reach, 100.0),
            colorbar={"title": name},
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return _html(figure, key, "", "", height=100 + 30 * len(rows))


_HOVER = "device %{x}, class %{y}: %{z} samples<extra></extra>"


def _band(line: Series, spread: np.ndarray, colour: str) -> go.Scatter:
    import plotly.graph_objects as go

    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return go.Scatter(
        x=np.concatenate([line.x, line.x[::-1]]),
        y=np.concatenate([line.y + spread, (line.y - spread)[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        hoverinfo="skip",
        legendgroup=line.label,
        showlegend=False,
    )


def _paper_axis(limits: Limits) -> go.Scatter:
    """Both ends of the paper's axis, as two lines of one trace."""
    import plotly.graph_objects as go

    return go.Scatter(
        x=[limits.start, limits.end, None, limits.start, limits.end],
        y=[limits.low, limits.low, None, limits.high, limits.high],
        mode="lines",
        name=LIMITS_LABEL,
        line={"color": LIMITS_COLOUR, "width": 1, "dash": "dash"},
        hoverinfo="skip",
    )


def _html(figure: go.Figure, key: str, x_label: str, y_label: str, height: int = HEIGHT) -> str:
    figure.update_layout(
        template="simple_white",
        height=height,
        margin={"l": 60, "r": 16, "t": 16, "b": 48},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top"},  # below, where it grows without covering a curve
        hovermode="closest",
    )
    figure.update_xaxes(title=x_label, showgrid=True)
    figure.update_yaxes(title=y_label, showgrid=True)
    options = {"displaylogo": False, "responsive": True, "displayModeBar": "hover"}
    return str(figure.to_html(full_html=False, include_plotlyjs=False, div_id=key, config=options))
