"""What the page asks for: the list of runs, the runs that somebody looks at, one round's devices, and files.

Everything here is called by one thread.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairwave.errors import ArgumentError, StoreError
from fairwave.report.page import FILE as REPORT
from fairwave.runs.order import Track
from fairwave.ui.device_values import device_values
from fairwave.ui.found_runs import FoundRuns, has_report
from fairwave.ui.pace import Pace
from fairwave.ui.results_file import Stored, stored_rounds
from fairwave.ui.run_description import Description
from fairwave.ui.run_state import RunState
from fairwave.ui.watched_run import WatchedRun

LIST_EVERY_S, RUN_EVERY_S = 1.0, 0.3
"""However many tabs ask, the folder and a run are looked at no more often than this."""
IDLE_S = 30.0
"""A run that nobody has asked for so long is let go of."""


class Cursor:
    """How much of a run's curves one tab has been sent."""

    def __init__(self) -> None:
        self.generation = -1
        self.sent: dict[Track, int] = {}


class Dashboard:
    """The folder's runs."""

    def __init__(self, folder: Path) -> None:
        self.found = FoundRuns(folder)
        self._list: list[dict[str, Any]] = []
        self._list_at = -1e9
        self._watched: dict[str, tuple[WatchedRun, float]] = {}
        self._asked: dict[str, float] = {}

    def runs(self) -> dict[str, Any]:
        """The list of runs."""
        now = time.monotonic()
        if now - self._list_at > LIST_EVERY_S:
            self._list, self._list_at = self.found.look(), now
        return {"folder": str(self.found.folder), "exists": self.found.folder.is_dir(), "runs": self._list}

    def run(self, name: str, cursor: Cursor) -> dict[str, Any]:
        """A run's page: everything at first, and later what is new since this cursor was used last."""
        run = self._current(name)
        known = run.description
        fresh = cursor.generation != run.generation
        if fresh:
            cursor.generation, cursor.sent = run.generation, {}
        pace, progress = self.found.paces.setdefault(name, Pace()), run.progress
        pace.note(progress.done) if run.state is RunState.RUNNING else pace.rest()
        message = {
            "name": name,
            "folder": str(run.folder),
            "generation": run.generation,
            "state": run.state,
            "note": run.note,
            "progress": dataclasses.asdict(progress),
            "left_s": pace.seconds_left(progress.total - progress.done),
            "rounds": known.rounds if known else 0,
            "federation": bool(known and known.federation),
            "sessions": known.sessions if known else (),
            "report": has_report(run.folder),
            "tracks": run.values(cursor.sent),
        }
        cursor.sent = {track: each.rounds for track, each in run.tracks.items()}
        return message | ({"scenario": known.scenario()} if known and fresh else {})

    def devices(self, name: str, track: Track, round_number: int) -> dict[str, Any]:
        """Every device in one round."""
        return device_values(self._current(name).reads(), track, round_number)

    def results(self, name: str) -> tuple[Stored, dict[int, bytes], Description]:
        """All that a run's results are made of."""
        run = self._current(name)
        if run.description is None:
            raise StoreError(run.note)
        return (*stored_rounds(run.reads(), run.description), run.description)

    def report(self, name: str) -> Path:
        """A run's report."""
        folder = self._folder(name)
        if not has_report(folder):
            raise ArgumentError(f"{name}: has no report; write it with: fairwave report {folder}")
        return folder / REPORT

    def close(self) -> None:
        """Let go of every file."""
        self._drop(list(self._watched))

    def _current(self, name: str) -> WatchedRun:
        now = time.monotonic()
        self._asked[name] = now
        self._drop([other for other, at in self._asked.items() if now - at > IDLE_S])
        run, looked_at = self._watched.get(name) or (WatchedRun(self._folder(name)), -1e9)
        if now - looked_at > RUN_EVERY_S:
            run.refresh()
            looked_at = now
        self._watched[name] = (run, looked_at)
        return run

    def _folder(self, name: str) -> Path:
        """A run's folder. Names are looked up among those found, and never made into a path."""
        if name in self._watched:
            return self._watched[name][0].folder
        folder = self.found.folders().get(name)
        if folder is None:
            raise ArgumentError("run: not among the runs of this folder; go back to the list")
        return folder

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._asked.pop(name, None)
            run, _ = self._watched.pop(name, (None, 0.0))
            if run is not None:
                run.close()
