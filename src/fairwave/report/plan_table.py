"""A plan as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import xarray as xr

FULL_WIDTH = 145
_Column: TypeAlias = tuple[str, str, float, str]
"""Title, variable, scale, format."""

_COLUMNS: tuple[_Column, ...] = (
    ("distance\n(m)", "distance_m", 1.0, "{:.1f}"),
    ("iterations", "local_iterations", 1.0, "{:.1f}"),
    ("power\n(mW)", "transmit_power_w", 1e3, "{:.1f}"),
    ("rate\n(Mbit/s)", "uplink_rate_bps", 1e-6, "{:.2f}"),
    ("compute\n(ms)", "compute_time_s", 1e3, "{:.0f}"),
    ("upload\n(ms)", "upload_time_s", 1e3, "{:.0f}"),
    ("compute\n(mJ)", "compute_energy_j", 1e3, "{:.1f}"),
    ("transmit\n(mJ)", "transmit_energy_j", 1e3, "{:.1f}"),
    ("energy\n(mJ)", "energy_j", 1e3, "{:.1f}"),
    ("utility", "utility", 1.0, "{:.4f}"),
    ("outage\n(%)", "outage_fraction", 1e2, "{:.2f}"),
)
_ESSENTIAL = ("local_iterations", "transmit_power_w", "uplink_rate_bps", "energy_j")
_MOST_REASONS = 5
_BATTERY = ("battery\n(rounds)", "battery_life_rounds", 1.0, "{:,.0f}")


def plan_tables(plan: xr.Dataset, fairness: dict[str, dict[str, float]], rows: int, width: int) -> Group:
    """Devices under each policy, evenly picked if there are more than `rows`, and the fairness summary.

    A terminal narrower than `FULL_WIDTH` gets the essential columns only, and is told which are left out.
    """
    columns = [column for column in _COLUMNS if width >= FULL_WIDTH or column[1] in _ESSENTIAL]
    columns += [_BATTERY] if "battery_life_rounds" in plan else []
    tables = [_device_table(plan.sel(policy=name), str(name), rows, columns) for name in plan["policy"].values]
    left_out = [column[0].replace("\n", " ") for column in _COLUMNS if column not in columns]
    hidden = f"Not shown on a narrow terminal: {', '.join(left_out)}. Use --format csv to see all columns."
    note = [Text(hidden)] if left_out else []
    return Group(*tables, *note, _fairness_table(fairness))


def _device_table(plan: xr.Dataset, policy: str, rows: int, columns: Sequence[_Column]) -> Table:
    num_devices = plan.sizes["device"]
    shown = np.unique(np.linspace(0, num_devices - 1, min(rows, num_devices)).round().astype(int))
    draws = f"mean of {plan.attrs['draws']} channel draws"
    if plan.attrs["draws"] == 1:
        draws = "no fading" if plan.attrs["fading"] == "none" else f"one channel draw, {plan.attrs['fading']} fading"
    of_all = f", {shown.size} of {num_devices:,} devices" if shown.size < num_devices else ""
    table = Table(title=f"{policy} ({draws}{of_all})", title_justify="left")
    table.add_column("device", justify="right")
    for title, *_ in columns:
        table.add_column(title, justify="right")
    table.add_column("case")
    for index in shown:
        device = plan.isel(device=index)
        cells = [_cell(float(device[name]) * scale, form) for _, name, scale, form in columns]
        table.add_row(Text(str(device["device"].item())), *cells, str(device["case"].item()))
    table.caption, table.caption_justify = _reasons(plan), "left"
    return table


def _reasons(plan: xr.Dataset) -> str | None:
    """Which devices never take part, and why; None if all do."""
    if "reason" not in plan:
        return None
    never = np.flatnonzero(plan["reason"].values != "")
    named = [f"device {plan['device'].values[at]}: {plan['reason'].values[at]}" for at in never[:_MOST_REASONS]]
    more = [f"{never.size - _MOST_REASONS:,} more never take part"] if never.size > _MOST_REASONS else []
    return "\n".join([*named, *more]) or None


def _cell(value: float, form: str) -> str:
    return form.format(value) if np.isfinite(value) else "-"


def _fairness_table(fairness: dict[str, dict[str, float]]) -> Table:
    table = Table(title="Energy per round across devices", title_justify="left")
    table.add_column("policy")
    for title in ("mean\n(mJ)", "std\n(mJ)", "CV", "max/min", "Jain", "Gini"):
        table.add_column(title, justify="right")
    for policy, summary in fairness.items():
        table.add_row(
            policy,
            f"{summary['mean'] * 1e3:.1f}",
            f"{summary['std'] * 1e3:.2f}",
            *(f"{summary[name]:.4f}" for name in ("cv", "max_min", "jain", "gini")),
        )
    return table
