"""Every device in one round, for the table of devices and the map of the cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairwave.engine.round_record import FAULTS, FINDING, Arrays
from fairwave.errors import ArgumentError
from fairwave.runs.faults import Fault, fault_name
from fairwave.runs.order import Track
from fairwave.runs.packing import unpack
from fairwave.ui.short_reads import ShortReads
from fairwave.ui.track_curves import number

SCALED = {
    "energy_mj": ("energy_j", 1e3),
    "iterations": ("local_iterations", 1.0),
    "loss": ("loss", 1.0),
    "deviation": ("deviation", 1.0),
    "noise_std": ("noise_std", 1.0),
}
"""What is shown of a device: the stored name, and what it is multiplied by."""


def device_values(reads: ShortReads, track: Track, round_number: int) -> dict[str, Any]:
    """What each device did in a round, counted from 1; distances are the round's own where devices move."""
    stored = reads.rows(
        "SELECT arrays FROM round WHERE scheme = ? AND seed = ? AND number = ?", (*track, round_number - 1)
    )
    begun = reads.rows("SELECT layout FROM track WHERE scheme = ? AND seed = ?", tuple(track))
    if not stored or not begun:
        raise ArgumentError(f"round {round_number} of {track.scheme} with seed {track.seed}: not stored; try another")
    arrays, layout = unpack(stored[0][0]), unpack(begun[0][0])
    findings = _findings(arrays)
    return {
        "round": round_number,
        "distance_m": _numbers(arrays.get("distance_now_m", layout["distance_m"]), 1.0),
        **{name: _numbers(arrays[key], scale) for name, (key, scale) in SCALED.items()},
        "status": _statuses(arrays, findings),
        "findings": findings,
        "faults": _faults(arrays),
        "cheating": np.flatnonzero(arrays["cheating"]).tolist(),
    }


def _numbers(values: np.ndarray, scale: float) -> list[float | None]:
    return [number(value * scale) for value in np.asarray(values, float).tolist()]


def _statuses(arrays: Arrays, findings: list[str]) -> list[str]:
    """What became of each device's update."""
    kinds = [~arrays["participating"], arrays["outage"], arrays["late"], ~arrays["delivered"]]
    words = np.select(kinds, ["not in the round", "outage", "late", "lost"], "delivered")
    return [
        "refused" if found and word == "delivered" else word
        for found, word in zip(findings, words.tolist(), strict=True)
    ]


def _findings(arrays: Arrays) -> list[str]:
    """The defences that refused each device's update."""
    names = sorted(name for name in arrays if name.startswith(FINDING))
    return [
        ", ".join(name.removeprefix(FINDING) for name in names if arrays[name][device])
        for device in range(arrays["energy_j"].size)
    ]


def _faults(arrays: Arrays) -> list[str] | None:
    """What went wrong with each device's answers in a federation; None in a simulation."""
    held = [name for name in FAULTS if name in arrays]
    if not held:
        return None
    each = [
        [fault_name(Fault(int(arrays[name][device]))).replace("_", " ") for name in held if arrays[name][device]]
        for device in range(arrays["energy_j"].size)
    ]
    return [", ".join(dict.fromkeys(found)) for found in each]
