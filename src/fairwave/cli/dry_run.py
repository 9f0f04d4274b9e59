"""`fairwave run --dry-run`: what a run would take, said without storing anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from fairwave.cli.arguments import warn
from fairwave.cli.progress import duration

if TYPE_CHECKING:
    from fairwave.runs.order import Order
    from fairwave.studies.forecast import Forecast

PLAIN_WIDTH = 100


def tell_forecast(order: Order) -> None:
    """Print the estimates for an order."""
    from rich.console import Console

    from fairwave.report.fitting_table import FittingTable
    from fairwave.report.style import counted
    from fairwave.studies.forecast import forecast

    found = forecast(order)
    for sentence in found.warnings:
        warn(sentence)
    tracks = f"{counted(len(order.schemes), 'scheme')}, {counted(len(order.seeds), 'seed')}"
    typer.echo(f"{tracks}, {counted(order.rounds, 'round')} each; nothing was stored.")
    typer.echo(f"time:   {_time(found)}")
    typer.echo(
        f"memory: about {found.memory_bytes / 1e9:.1f} GB at the peak, of {found.machine_bytes / 1e9:.1f} GB here."
    )
    rows = [
        (
            each.scheme,
            f"{each.iterations:.0f}",
            f"{each.energy_j * 1e3:.1f}",
            f"{each.energy_std_j * 1e3:.2f}",
            f"{each.total_j:.1f}",
        )
        for each in found.schemes
    ]
    heads = (
        "scheme",
        "iterations\na round",
        "energy of a device\nand round (mJ)",
        "std over\ndevices (mJ)",
        "of all, in\nthe run (J)",
    )
    title = "energy, as the schemes' rules plan it over the run's channels"
    Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH).print(FittingTable(title, heads, rows))


def _time(found: Forecast) -> str:
    if found.pace is None or found.seconds is None:
        return "unknown: a round does not fit into the memory of this machine, and none was tried."
    return (
        f"about {duration(found.seconds)}, roughly: two rounds of {found.order.schemes[0]} took "
        f"{found.pace.first_s:.1f} s, with compiling, and {found.pace.next_s:.2f} s here; the times of other schemes "
        "are estimated from their iterations."
    )
