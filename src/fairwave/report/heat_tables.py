"""Tables whose cells are coloured by their values: they are read by eye, by ear, and on paper."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

MOST_DEVICES = 60
"""Devices whose samples are listed one by one."""
REACH = 100.0
"""Values beyond have the same colour."""
_STRONGEST = 0.6
_ABOVE, _BELOW = "213,94,0", "0,114,178"


def heat_map_html(
    rows: Sequence[str], columns: Sequence[str], values: np.ndarray, texts: Sequence[Sequence[str]], name: str
) -> str:
    """A table in colours: blue below zero, orange above, with a text in every cell and what it tells as caption."""
    reach = min(REACH, float(np.nanmax(np.abs(values)))) if np.isfinite(values).any() else 1.0
    shares = np.nan_to_num(values) / (reach or 1.0)
    return _coloured(rows, ["", *columns], shares, texts, f"Colours: {name}.")


def holdings_html(results: xr.Dataset) -> str:
    """Who holds what: samples of each class on each device, for the first seed."""
    samples = results["samples"].isel(seed=0).values
    shown = samples[:MOST_DEVICES]
    left_out = f" The first {len(shown)} of {len(samples)} devices." if len(samples) > len(shown) else ""
    texts = [[str(int(count)) for count in row] for row in shown]
    shares = -shown / max(1, samples.max())
    heads = ["device", *(f"class {number}" for number in range(samples.shape[1]))]
    caption = f"Samples per device and class, first seed; the darker, the more.{left_out}"
    return _coloured([str(device) for device in results["device"].values[: len(shown)]], heads, shares, texts, caption)


def _coloured(
    rows: Sequence[str], heads: Sequence[str], shares: np.ndarray, texts: Sequence[Sequence[str]], caption: str
) -> str:
    head = "".join(f'<th scope="col" class="number">{html.escape(name)}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row)}</th>'
        + "".join(_cell(float(share), text) for share, text in zip(line, cells, strict=True))
        + "</tr>"
        for row, line, cells in zip(rows, shares, texts, strict=True)
    )
    return (
        f'<div class="sheet heat" tabindex="0"><table><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(share: float, text: str) -> str:
    colour, strength = _ABOVE if share > 0 else _BELOW, _STRONGEST * min(1.0, abs(share))
    return f'<td class="number" style="background:rgba({colour},{strength:.2f})">{html.escape(text)}</td>'
