"""The curves of one scheme and seed, which grow as its rounds are stored."""

from __future__ import annotations

import math
import time
from typing import Any

from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import TEST_RMSE
from fairwave.runs.database import damaged
from fairwave.runs.energy_so_far import EnergySoFar
from fairwave.runs.integrity import round_digest, track_digest
from fairwave.runs.order import Track
from fairwave.runs.packing import unpack
from fairwave.ui.short_reads import Row, ShortReads

CURVES = ("loss", "tested", "energy_mj", "spread_mj")
"""Mean device loss, how good the true model is on test data, mean energy of the round's uploads, and the std over
devices of the mean energy so far."""


class TrackCurves:
    """Reads every round once, and compares it with its digest, which covers all rounds before it."""

    def __init__(self, track: Track) -> None:
        self.track, self.rounds = track, 0
        self.ended: EndReason | None = None
        self.measure = "test accuracy"
        self.curves: dict[str, list[float | None]] = {name: [] for name in CURVES}
        self._standing: bytes | None = None
        self._energy: EnergySoFar | None = None

    def read_new(self, reads: ShortReads, scenario: str, end: float) -> bool:
        """Take in what has been stored since; whether that is all, or `end`, a time of `time.monotonic`, came first."""
        if self._standing is None and not self._read_start(reads, scenario):
            return True
        whole = False
        while not whole:
            rows, whole = reads.some_rows(
                "SELECT number, mean_loss, global_loss, test_accuracy, end_reason, arrays, digest FROM round "
                "WHERE scheme = ? AND seed = ? AND number >= ? ORDER BY number",
                (*self.track, self.rounds),
            )
            for row in rows:
                self._take(reads, row)
            if time.monotonic() > end:
                return whole
        return True

    def summary(self) -> dict[str, float | None]:
        """Mean and spread of energy over devices so far, in millijoules."""
        energy = self._energy
        mean, std = (math.nan, math.nan) if energy is None else (energy.mean_j(), energy.std_j())
        return {"mean_energy_mj": number(mean * 1e3), "energy_std_mj": number(std * 1e3)}

    def _read_start(self, reads: ShortReads, scenario: str) -> bool:
        """Check what the track was begun with; whether it has begun."""
        rows = reads.rows(
            "SELECT fingerprint, layout, digest FROM track WHERE scheme = ? AND seed = ?", tuple(self.track)
        )
        if not rows:
            return False
        fingerprint, layout, digest = rows[0]
        if digest != track_digest(self.track, fingerprint, layout, scenario):
            raise damaged(reads.path, f"the description of {self._name()} does not match its digest")
        self._standing = digest
        return True

    def _take(self, reads: ShortReads, row: Row) -> None:
        stored_number, *summary, packed, digest = row
        events = reads.rows(
            "SELECT content, sender, audience, basis, proven_sensitivity, arrays FROM release "
            "WHERE scheme = ? AND seed = ? AND round = ? ORDER BY rowid",
            (*self.track, stored_number),
        )
        expected = round_digest(self._standing or b"", stored_number, packed, summary, events)
        if stored_number != self.rounds or digest != expected:
            raise damaged(reads.path, f"round {self.rounds + 1} of {self._name()} does not match its digest")
        arrays = unpack(packed)
        self._energy = self._energy or EnergySoFar(arrays["energy_j"].size)
        self._energy.add(arrays)
        uploaded = arrays["participating"] & ~arrays["outage"]
        mean_loss, _, tested, end_reason = summary
        if TEST_RMSE in arrays:
            self.measure, tested = "test RMSE", float(arrays[TEST_RMSE])
        energy_j = float(arrays["energy_j"][uploaded].mean()) if uploaded.any() else math.nan
        values = (mean_loss, tested, energy_j * 1e3, self._energy.std_j() * 1e3)
        for name, value in zip(CURVES, values, strict=True):
            self.curves[name].append(number(value))
        self.ended = None if end_reason is None else EndReason(end_reason)
        self._standing, self.rounds = digest, self.rounds + 1

    def _name(self) -> str:
        return f"{self.track.scheme} with seed {self.track.seed}"


def number(value: Any) -> float | None:
    """A value for the page, to six digits; None where there is none."""
    return None if value is None or not math.isfinite(value) else float(f"{float(value):.6g}")
