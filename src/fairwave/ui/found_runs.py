"""The runs below a folder, with their states in short."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

from fairwave.engine.end_reasons import EndReason
from fairwave.errors import FairwaveError
from fairwave.report.page import FILE as REPORT
from fairwave.runs.database import FILE
from fairwave.runs.order import Track
from fairwave.runs.seal import check_seal
from fairwave.ui.pace import Pace
from fairwave.ui.run_description import read_description
from fairwave.ui.run_state import Progress, RunState, state_after, state_of
from fairwave.ui.short_reads import BusyError, RemovedError, ShortReads
from fairwave.ui.track_curves import number
from fairwave.ui.watched_run import Signature, signature

DEEPEST = 5
"""Folders below the given one in which runs are looked for; a study's are in the second."""
SEALS_S = 0.5
"""Seals of large files take long to compare: some now, the others when this is asked for again."""
SPARK_POINTS = 32


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the list of runs shows of one."""

    state: RunState
    note: str = ""
    schemes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    federation: bool = False
    progress: Progress = dataclasses.field(default_factory=lambda: Progress(0, 0))
    accuracy: float | None = None
    """The first scheme and seed's, in the last round that has one."""
    spark: tuple[float | None, ...] = ()
    """How that accuracy came about, in a few points."""


class FoundRuns:
    """Looks through a folder again and again; a run whose file is as it was is not read again. Used by one thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paces: dict[str, Pace] = {}
        self._known: dict[str, tuple[Signature, Facts]] = {}
        self._sound: dict[str, Signature] = {}

    def folders(self) -> dict[str, Path]:
        """Folders of runs by their names, which are paths below the folder; no link is followed."""
        found = {}
        for place, below, files in os.walk(self.folder):
            path = Path(place)
            if FILE in files:
                below.clear()
                name = path.relative_to(self.folder).as_posix() if path != self.folder else path.resolve().name
                found[name.encode("utf-8", "replace").decode()] = path
            elif len(path.relative_to(self.folder).parts) >= DEEPEST:
                below.clear()
            below[:] = sorted(name for name in below if not name.startswith("."))
        return found

    def look(self) -> list[dict[str, Any]]:
        """Every run with its facts, the one that was written to last first."""
        folders = self.folders()
        for gone in self._known.keys() - folders.keys():
            del self._known[gone]
        end = time.monotonic() + SEALS_S
        rows = [row for name, path in folders.items() if (row := self._row(name, path, end))]
        return sorted(rows, key=lambda row: (row["state"] != RunState.RUNNING, -row["changed"], row["name"]))

    def _row(self, name: str, folder: Path, end: float) -> dict[str, Any] | None:
        """A run's row; None if it was removed meanwhile."""
        facts = self._facts(name, folder, end)
        if facts is None or facts.state is RunState.REMOVED:
            return None
        pace = self.paces.setdefault(name, Pace())
        pace.note(facts.progress.done) if facts.state is RunState.RUNNING else pace.rest()
        return {
            **{field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)},
            "progress": dataclasses.asdict(facts.progress),
            "name": name,
            "left_s": pace.seconds_left(facts.progress.total - facts.progress.done),
            "changed": round(self._known[name][0][2] / 1e9) if name in self._known else 0,
            "report": has_report(folder),
        }

    def _facts(self, name: str, folder: Path, end: float) -> Facts | None:
        """What is known of a run now; None where there is none any more, or nothing is known yet."""
        known = self._known.get(name)
        try:
            now = signature(folder / FILE)
        except FairwaveError as error:
            return None if isinstance(error, RemovedError) else Facts(RunState.DAMAGED, str(error))
        try:
            if known is None or known[0] != now or known[1].state in (RunState.RUNNING, RunState.INTERRUPTED):
                self._known[name] = known = (now, _read_facts(folder / FILE))
            if self._sound.get(name) != now and known[1].state is not RunState.RUNNING and time.monotonic() < end:
                check_seal(folder / FILE)
                self._sound[name] = now
        except BusyError:
            return None if known is None else known[1]
        except FairwaveError as error:
            self._known[name] = known = (now, Facts(state_after(error), str(error)))
        return known[1]


def has_report(folder: Path) -> bool:
    """Whether a run's report has been written, as a file of its own."""
    page = folder / REPORT
    return page.is_file() and not page.is_symlink()


def _read_facts(path: Path) -> Facts:
    reads = ShortReads(path)
    try:
        described = read_description(reads)
        last = {track: _last(reads, track) for track in described.tracks()}
        progress = Progress.counted(list(last.values()), described.rounds)
        first = described.tracks()[0]
        spark = _spark(reads, first, last[first][0])
        return Facts(
            state=state_of(reads, progress),
            schemes=described.schemes,
            seeds=described.seeds,
            federation=described.federation,
            progress=progress,
            accuracy=next((value for value in reversed(spark) if value is not None), None),
            spark=spark,
        )
    finally:
        reads.close()


def _last(reads: ShortReads, track: Track) -> tuple[int, bool]:
    """How many rounds are stored of a track, and whether it ended by itself."""
    rows = reads.rows(
        "SELECT number, end_reason FROM round WHERE scheme = ? AND seed = ? ORDER BY number DESC LIMIT 1", tuple(track)
    )
    return (rows[0][0] + 1, rows[0][1] is not None and bool(EndReason(rows[0][1]))) if rows else (0, False)


def _spark(reads: ShortReads, track: Track, rounds: int) -> tuple[float | None, ...]:
    """A few of a track's test accuracies, the last among them."""
    if rounds == 0:
        return ()
    count = min(rounds, SPARK_POINTS)
    wanted = sorted({(rounds - 1) * k // max(count - 1, 1) for k in range(count)})
    places = ",".join("?" * len(wanted))
    rows = reads.rows(
        f"SELECT test_accuracy FROM round WHERE scheme = ? AND seed = ? AND number IN ({places}) ORDER BY number",
        (*track, *wanted),
    )
    return tuple(number(value) for (value,) in rows)
