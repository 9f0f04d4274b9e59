"""A run that somebody looks at: everything that its page shows, kept up to date while its file changes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from fairwave.errors import FairwaveError, StoreError
from fairwave.runs.database import FILE
from fairwave.runs.order import Track
from fairwave.runs.seal import check_seal
from fairwave.ui.run_description import Description, read_description
from fairwave.ui.run_state import Progress, RunState, state_after, state_of
from fairwave.ui.short_reads import BusyError, RemovedError, ShortReads
from fairwave.ui.track_curves import TrackCurves

AT_ONCE_S = 1.0
"""A long run is read in parts, so that its curves appear meanwhile."""
Signature = tuple[int, ...]


def signature(path: Path) -> Signature:
    """What differs if a file is another one, or has been written to."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise RemovedError(f"{path}: was removed; see 'fairwave runs list'") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    return found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size


class WatchedRun:
    """Follows one run; used by one thread."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, folder / FILE
        self.state, self.note = RunState.INTERRUPTED, ""
        self.description: Description | None = None
        self.tracks: dict[Track, TrackCurves] = {}
        self.generation = 0
        """Changes when everything known before is void, since the file is another one."""
        self._reads: ShortReads | None = None
        self._seen: Signature | None = None
        self._version: bytes | None = None
        self._whole = False

    @property
    def progress(self) -> Progress:
        """How much is done."""
        if self.description is None:
            return Progress(0, 0)
        stored = [(each.rounds, each.ended is not None) for each in self.tracks.values()]
        return Progress.counted(stored, self.description.rounds)

    def refresh(self) -> None:
        """Look at the file, and read what is new in it."""
        try:
            now = signature(self._path)
            if self.state is RunState.DAMAGED and now == self._seen:
                return
            reads = self._current(now)
            self._read(reads)
            self.state, self.note = state_of(reads, self.progress), ""
        except BusyError:
            return  # what was known stands
        except FairwaveError as error:
            self.state, self.note = state_after(error), str(error)
            self.close()

    def reads(self) -> ShortReads:
        """Where the run is read from; an error if it cannot be."""
        if self._reads is None:
            raise StoreError(self.note or f"{self.folder}: cannot be read now; look again later")
        return self._reads

    def close(self) -> None:
        """Let go of the file."""
        if self._reads is not None:
            self._reads.close()
        self._reads = None

    def _current(self, now: Signature) -> ShortReads:
        """A connection to the file that is there now."""
        if self._reads is not None and self._seen is not None:
            same_file = now[0] == self._seen[0]
            if same_file and (now == self._seen or self._reads.version() != self._version):
                return self._reads
        # Another file, or one that something other than SQLite has written to: what was read of it is void.
        self.close()
        self._seen = now
        self._forget()
        check_seal(self._path)
        self._reads = ShortReads(self._path)
        return self._reads

    def _forget(self) -> None:
        self.description, self.tracks = None, {}
        self.generation += 1
        self._version, self._whole = None, False

    def _read(self, reads: ShortReads) -> None:
        version = reads.version()
        if version == self._version and self._whole:
            return
        description = read_description(reads)
        begun = {track: self.tracks.get(track) or TrackCurves(track) for track in description.tracks()}
        self.description, self.tracks = description, begun
        end = time.monotonic() + AT_ONCE_S
        self._whole = all([each.read_new(reads, description.scenario_text, end) for each in begun.values()])
        self._version, self._seen = version, signature(self._path)

    def values(self, since: dict[Track, int]) -> list[dict[str, Any]]:
        """Every track's facts, with those points of its curves that come after so many rounds."""
        return [
            {
                "scheme": track.scheme,
                "seed": track.seed,
                "rounds": each.rounds,
                "ended": None if each.ended is None else each.ended.in_words(),
                "measure": each.measure,
                "from": since.get(track, 0),
                **each.summary(),
                **{name: curve[since.get(track, 0) :] for name, curve in each.curves.items()},
            }
            for track, each in self.tracks.items()
        ]
