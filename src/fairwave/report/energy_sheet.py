"""What devices spend, and how evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.metrics.uploads import uploading
from fairwave.report.statistics import fairness_over_seeds, labelled
from fairwave.report.style import with_interval
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

HEADS = ("scheme", "mean (mJ)", "std (mJ)", "CV", "max/min", "Jain", "Gini")


def energy_section(results: xr.Dataset) -> list[Piece]:
    """A table, or a sentence where devices do not report what they spend."""
    if not bool(results["energy_j"].where(uploading(results)).notnull().any()):
        return ['<p class="caption">The devices did not report their energy.</p>']
    rows = []
    for name in map(str, results["scheme"].values):
        energy = fairness_over_seeds(results, name)
        rows.append(
            (
                labelled(results, name),
                with_interval(energy["mean"], 1, 1e3),
                with_interval(energy["std"], 2, 1e3),
                *(with_interval(energy[key], 4) for key in ("cv", "max_min", "jain", "gini")),
            )
        )
    caption = (
        "The table shows how a device's mean energy per round, over the rounds in which it uploaded, varies "
        "over devices. CV is the standard deviation divided by the mean. If all devices pay the same, Jain's "
        "index is 1 and Gini's coefficient is 0." + _prepared(results)
    )
    return [Sheet("energy", "Energy and fairness", caption, HEADS, rows)]


def _prepared(results: xr.Dataset) -> str:
    """What devices spend before the first round, which no row counts; nothing where they spend nothing."""
    if "preparation_energy_j" not in results.coords:
        return ""
    energy_j, time_s = (results[name].mean().item() for name in ("preparation_energy_j", "preparation_s"))
    return (
        " Before the first round, every device computes the features of its samples once. This takes "
        f"{energy_j:.3g} J and {time_s:.3g} s in the mean, which the table does not include."
    )
