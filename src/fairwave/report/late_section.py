"""What became of updates that came after their deadline, where they are used in a later round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.report.statistics import labelled
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

HEADS = ("scheme", "came late", "used", "too late, dropped", "lost or on the way", "mean age (rounds)", "mean weight")


def late_section(results: xr.Dataset) -> list[Piece]:
    """A table, or nothing where late updates are never used."""
    if "late_age" not in results:
        return []
    caption = (
        "An update that misses the deadline is used in the round in which it arrives (learning.late_rounds). "
        "It is scaled by a weight that falls with its age (learning.late_decay), and its device is not asked "
        "meanwhile. An update that a defence refuses counts as used here."
    )
    rows = [late_row(results, scheme) for scheme in map(str, results["scheme"].values)]
    return [Sheet("late-updates", "Late updates", caption, HEADS, rows)]


def late_row(results: xr.Dataset, scheme: str) -> tuple[str, ...]:
    """Counts over all rounds, devices and seeds, then means over the late updates that were used."""
    own = results.sel(scheme=scheme)
    used = own["late_age"] > 0
    came, found, dropped = (int(mask.sum()) for mask in (own["late"] == 1, used, own["late_dropped"] == 1))
    means = [f"{float(own[name].where(used).mean()):.2f}" if found else "" for name in ("late_age", "late_weight")]
    counts = map(str, (came, found, dropped, came - found - dropped))
    return (labelled(results, scheme), *counts, *means)
