"""A plan as a page for engineers: what devices spend, how long batteries last, and what another cell would change."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.report.figure_data import MOST_POINTS, Panel, Series
from fairwave.report.interactive_figures import panel_html
from fairwave.report.page import write_page
from fairwave.report.style import counted
from fairwave.report.tables import table

if TYPE_CHECKING:
    import xarray as xr

ENDING = ".html"
MOST_ROWS = 100
"""Devices in the table of each policy, evenly picked; the other forms of a plan have all."""
DAY_S = 86_400.0
PACES = (("one an hour", 24.0), ("one in ten minutes", 144.0), ("one a minute", 1440.0))
"""How often rounds may follow each other, in words, and so many a day."""
OF_DEVICES = (
    ("energy_j", "Energy of a round", "energy per round (mJ)", 1e3),
    ("local_iterations", "Local iterations", "local iterations", 1.0),
    ("transmit_power_w", "Transmit power", "transmit power (mW)", 1e3),
    ("uplink_rate_bps", "Uplink rate", "uplink rate (Mbit/s)", 1e-6),
)
ANSWERS = (
    ("energy_j", "Mean energy of devices", "energy per round (mJ)", 1e3),
    ("most_energy_j", "Energy of the device that spends most", "energy per round (mJ)", 1e3),
    ("outage_fraction", "Uploads that fail", "outages (%)", 1e2),
    ("local_iterations", "Local iterations", "local iterations", 1.0),
)
"""A variable, its title, axis and scale."""
BATTERY = ("battery_life_rounds", "Until the first battery is empty, at a round an hour", "days", 1.0 / 24.0)
QUESTIONS = (
    ("cell.deadline_s", "another deadline", "deadline (s)", 1.0),
    ("radio.bandwidth_hz", "another bandwidth", "bandwidth of a device (kHz)", 1e-3),
    ("radio.payload_bits", "another payload", "payload of an upload (kbit)", 1e-3),
)
"""A parameter, what is asked about it, axis and scale."""


def write_plan_page(
    plan: xr.Dataset, fairness: dict[str, dict[str, float]], answers: xr.Dataset, path: Path, source: str
) -> Path:
    """Write the page of a plan of some scenario; `answers` are those of `planner.what_if`."""
    devices = plan.sizes["device"]
    return write_page(
        path,
        title=f"fairwave: plan of {source}",
        opening=f"{counted(devices, 'device')}, {_channels(plan)}, a round of {plan.attrs['round_s']:g} s. No training "
        "was run. Drag to zoom, double-click to reset, click a name to hide it.",
        sections=_summary(fairness) + _batteries(plan) + _of_devices(plan) + _questions(answers, devices) + _all(plan),
        conclusions=(
            "You may compare policies with each other, because they had the same channels.",
            "Energy comes from the paper's model of computing and transmission, and not from a measured device. "
            "The model does not include reception, sleep, or anything else that a device does, so real batteries "
            "do not last as long.",
            "Each question changes one parameter and keeps all others. A lower bandwidth for every device does "
            "not make room for more devices here.",
        ),
    )


def _channels(plan: xr.Dataset) -> str:
    if plan.attrs["draws"] == 1:
        return "no fading" if plan.attrs["fading"] == "none" else "one channel draw"
    return f"means over {plan.attrs['draws']} channel draws"


def _summary(fairness: dict[str, dict[str, float]]) -> str:
    rows = [
        (
            name,
            *(f"{each[key] * 1e3:.{digits}f}" for key, digits in (("mean", 1), ("std", 2))),
            f"{each['max_min']:.2f}",
        )
        for name, each in fairness.items()
    ]
    heads = ("policy", "mean energy (mJ)", "std across devices (mJ)", "largest / smallest")
    return f'<h2>Energy of a round</h2><div class="sheet">{table(heads, rows)}</div>'


def _batteries(plan: xr.Dataset) -> str:
    """Days until the first, the median and the last battery is empty, for rounds that follow at some pace."""
    if "battery_life_rounds" not in plan:
        return (
            '<h2>Battery life</h2><p class="caption">No capacity is given: add --battery "2 Wh", a column '
            "battery_capacity_j in the fleet's file, or compute.battery_capacity_j in the scenario.</p>"
        )
    rows = []
    for name in map(str, plan["policy"].values):
        rounds = plan["battery_life_rounds"].sel(policy=name).values
        for which, lasting in (
            ("first empty", np.min(rounds)),
            ("median", np.median(rounds)),
            ("last", np.max(rounds)),
        ):
            rows.append((name, which, f"{lasting:,.0f}", *(_days(lasting / a_day) for _, a_day in PACES)))
    back_to_back = DAY_S / plan.attrs["round_s"]
    heads = ("policy", "battery", "rounds", *(f"days, {pace}" for pace, _ in PACES))
    caption = (
        f"How many rounds, and days, a battery lasts, if rounds come at that pace; back to back, {back_to_back:,.0f} "
        "rounds are a day. Only the energy of rounds is counted."
    )
    return f'<h2>Battery life</h2><p class="caption">{caption}</p><div class="sheet">{table(heads, rows)}</div>'


def _days(days: float) -> str:
    return "unlimited" if not np.isfinite(days) else f"{days:,.1f}" if days < 100 else f"{days:,.0f}"


def _of_devices(plan: xr.Dataset) -> str:
    order = np.argsort(plan["path_loss_db"].values, kind="stable")
    if order.size > MOST_POINTS:
        order = order[np.linspace(0, order.size - 1, MOST_POINTS).astype(int)]
    loss_db = plan["path_loss_db"].values[order]
    panels = [
        Panel(
            key=variable,
            title=title,
            x_label="path loss (dB)",
            y_label=label,
            caption="",
            series=[
                Series(str(name), loss_db, plan[variable].sel(policy=name).values[order] * scale)
                for name in plan["policy"].values
            ],
            joined=order.size <= 50,
            over_rounds=False,
        )
        for variable, title, label, scale in OF_DEVICES
    ]
    return f"<h2>Devices, from the nearest to the farthest</h2>{_drawn(panels)}"


def _questions(answers: xr.Dataset, devices: int) -> str:
    asked = answers.attrs["devices"]
    of_all = (
        f" The answer is for {asked:,} of the {devices:,} devices, which are picked evenly." if asked < devices else ""
    )
    sections = []
    for parameter, question, label, scale in QUESTIONS:
        own = answers.sel(parameter=parameter)
        x = own["value"].values * scale
        panels = [
            Panel(
                key=f"{parameter}-{variable}",
                title=title,
                x_label=label,
                y_label=axis,
                caption="",
                series=[
                    Series(str(name), x, own[variable].sel(policy=name).values * factor)
                    for name in own["policy"].values
                ],
                over_rounds=False,
            )
            for variable, title, axis, factor in (*ANSWERS, *((BATTERY,) if BATTERY[0] in own else ()))
        ]
        now = float(own["value"].sel(factor=1.0)) * scale
        sections.append(
            f'<h2>What if there were {question}?</h2><p class="caption">{html.escape(label)}: {now:g} in this plan.'
            f"{of_all} A gap is a value with which no device can upload in time.</p>{_drawn(panels)}"
        )
    return "".join(sections)


def _drawn(panels: Sequence[Panel]) -> str:
    drawn = "".join(f"<div><h3>{panel.title}</h3>{panel_html(panel, 'plan-')}</div>" for panel in panels)
    return f'<div class="figures">{drawn}</div>'


def _all(plan: xr.Dataset) -> str:
    """A row per device and policy."""
    devices = plan.sizes["device"]
    shown = np.unique(np.linspace(0, devices - 1, MOST_ROWS).round().astype(int))
    heads = (
        "device",
        "distance (m)",
        "policy",
        "iterations",
        "power (mW)",
        "rate (Mbit/s)",
        "energy (mJ)",
        "outage (%)",
    )
    columns = (("local_iterations", 1.0, 1), ("transmit_power_w", 1e3, 1), ("uplink_rate_bps", 1e-6, 2))
    rows = []
    for place in shown:
        for name in map(str, plan["policy"].values):
            own = plan.isel(device=place).sel(policy=name)
            told = [(float(own[key]) * scale, digits) for key, scale, digits in (*columns, ("energy_j", 1e3, 1))]
            rows.append(
                (
                    str(own["device"].item()),
                    f"{float(own['distance_m']):.1f}",
                    name,
                    *("never" if not np.isfinite(value) else f"{value:.{digits}f}" for value, digits in told),
                    f"{float(own['outage_fraction']) * 100:.2f}",
                )
            )
    of_all = f" {shown.size:,} of {devices:,}, evenly picked." if shown.size < devices else ""
    caption = (
        f"Values are means over the draws in which a device could upload.{of_all} Use --out with .csv or "
        ".parquet to get all of them."
    )
    return f'<h2>All devices</h2><p class="caption">{caption}</p><div class="sheet">{table(heads, rows)}</div>'
