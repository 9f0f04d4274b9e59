"""Whether cheating paid: devices that misbehaved beside those that did not, in the same rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairwave.report.statistics import has_classes, interval_of, labelled, last_value
from fairwave.report.style import with_interval
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

_COMPARED = (
    ("deviation", "deviation", 1.0, 3),
    ("received_loss", "loss of the received copy", 1.0, 3),
    ("received_accuracy", "its accuracy", 1.0, 3),
    ("energy_j", "energy (mJ)", 1e3, 1),
    ("utility", "utility", 1.0, 4),
)


def cheating_section(results: xr.Dataset) -> list[Piece]:
    """A table, or nothing if everybody was honest."""
    cheated = results["cheating"].fillna(0).astype(bool)
    if not bool(cheated.any()):
        return []
    rows, backdoor = [], ("backdoor at the end",) if "backdoor_success" in results else ()
    for scheme in map(str, results["scheme"].values):
        success = [with_interval(last_value(results["backdoor_success"], scheme)) for _ in backdoor]
        rows.append((labelled(results, scheme), "cheats", *_means(results, scheme, cheats=True), *success))
        rows.append(
            (labelled(results, scheme), "honest", *_means(results, scheme, cheats=False), *("" for _ in backdoor))
        )
    heads = ("scheme", "devices", *(title for _, title, _, _ in _compared(results)), "caught (%)", *backdoor)
    caption = (
        "Values are means over the rounds in which any device misbehaved, for the devices that did and those "
        "that did not. Devices also differ in distance, so compare them with the same devices in a run "
        "without cheating. Utility is best at half of utility.energy_reference_j, and saving more energy than "
        "that lowers it. 'Caught' is the share of rounds in which a defence refused the device's update. For "
        "honest devices, these are false alarms. 'Backdoor' is the share of marked test samples that the "
        "model takes for the attacker's class. It is shown if there is such an attacker."
    )
    return [Sheet("cheating", "Does cheating pay?", caption, heads, rows)]


def _compared(results: xr.Dataset) -> list[tuple[str, str, float, int]]:
    """What is compared: variable, title, scale and digits."""
    return [each for each in _COMPARED if each[0] != "received_accuracy" or has_classes(results)]


def _means(results: xr.Dataset, scheme: str, *, cheats: bool) -> list[str]:
    one = results.sel(scheme=scheme)
    cheated = one["cheating"].fillna(0).astype(bool)
    there = (one["participating"] == 1) & cheated.any("device") & (cheated == cheats)
    shown = [(name, one[name], scale, digits) for name, _, scale, digits in _compared(results)]
    caught = ((one["findings"] > 0) * 1.0).where(one["delivered"] == 1)
    return [
        with_interval(interval_of(name, np.asarray(values.where(there).mean(("round", "device")))), digits, scale)
        for name, values, scale, digits in (*shown, ("caught", caught, 100.0, 1))
    ]
