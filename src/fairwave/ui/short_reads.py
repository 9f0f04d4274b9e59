"""Reads of a run's file that hold no lock, so that no writer can notice them.

A run's file has a rollback journal. While anybody holds SQLite's shared lock, a writer cannot commit; and a reader that
the system puts aside for a moment keeps it. Reads here take no lock at all. They are instead repeated if a writer came
in between: SQLite changes the file only while a journal stands beside it, and counts every commit in the file's header.
A read before and after which there is no journal, and the count is the same, has seen one moment.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fairwave.errors import FairwaveError, StoreError
from fairwave.runs.database import damaged, is_held

LONGEST_S = 0.005
"""A read of many rows stops after this long, and is continued in another: short ones are seldom disturbed."""
WAIT_S, PAUSE_S = 0.5, 0.002
"""How long a read is tried again while a writer commits, and how long it waits in between."""
COUNT_AT, COUNT_BYTES = 24, 4
"""Where SQLite's file format has the number of commits."""
Row = tuple[Any, ...]
Answer = TypeVar("Answer")


class BusyError(StoreError):
    """A writer is committing; look again later."""


class CutShortError(StoreError):
    """A program ended in the middle of a write, which nobody has rolled back yet."""


class RemovedError(StoreError):
    """The file is not there any more."""


class ShortReads:
    """Reads a run's file without locks; used by one thread."""

    def __init__(self, path: Path) -> None:
        self.path, self._journal = path, path.with_name(f"{path.name}-journal")
        self._connection: sqlite3.Connection | None = None
        self._opened_at: bytes | None = None
        try:
            self._header = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise _removed(path) from None
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        self._let_go = weakref.finalize(self, os.close, self._header)

    def close(self) -> None:
        """Let go of the file."""
        self._forget()
        self._let_go()

    def version(self) -> bytes:
        """What changes whenever another program has committed to the file."""
        os.lseek(self._header, COUNT_AT, os.SEEK_SET)
        return os.read(self._header, COUNT_BYTES)

    def rows(self, select: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query that has few."""
        return self.at_one_moment(lambda connection: connection.execute(select, parameters).fetchall())

    def some_rows(self, select: str, parameters: Sequence[object] = ()) -> tuple[list[Row], bool]:
        """Rows of a query that may have many, at least one if there are any; and whether these are all."""
        return self.at_one_moment(lambda connection: _taken(connection, select, parameters))

    def at_one_moment(self, read: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What is read, when no writer came in between; `read` may be called several times."""
        end = time.monotonic() + WAIT_S
        while True:
            moment = self._moment()
            if moment is not None:
                answer, trouble = self._tried(read, moment)
                if self._moment() == moment:
                    if trouble is not None:
                        raise trouble
                    return answer[0]
                self._forget()  # pages of different moments may be kept in it
            if time.monotonic() > end:
                raise self._in_use()
            time.sleep(PAUSE_S)

    def _moment(self) -> bytes | None:
        """The number of commits, if nobody is changing the file."""
        if not _same(self.path, self._header):
            raise _removed(self.path)
        return None if self._journal.exists() else self.version()

    def _tried(
        self, read: Callable[[sqlite3.Connection], Answer], moment: bytes
    ) -> tuple[list[Answer], FairwaveError | None]:
        """An answer, or what is wrong with the file if nobody has changed it meanwhile."""
        try:
            return [read(self._at(moment))], None
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            return [], damaged(self.path, str(error))

    def _at(self, moment: bytes) -> sqlite3.Connection:
        """A connection that keeps no page of an earlier moment. SQLite is told that the file never changes."""
        if self._connection is None or self._opened_at != moment:
            self._forget()
            address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            self._opened_at = moment
        return self._connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _in_use(self) -> StoreError:
        if is_held(self.path.parent):
            return BusyError(f"{self.path}: in use by another program; wait for it, or end it")
        return CutShortError(
            f"{self.path}: a program ended in the middle of a write; resume the run, or look at it with 'fairwave runs "
            "show', which rolls that write back"
        )


def _same(path: Path, handle: int) -> bool:
    """Whether a file that was opened is still the one with that path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _removed(path: Path) -> RemovedError:
    return RemovedError(f"{path}: was removed; see 'fairwave runs list'")


def _taken(connection: sqlite3.Connection, select: str, parameters: Sequence[object]) -> tuple[list[Row], bool]:
    end, taken = time.perf_counter() + LONGEST_S, []
    cursor = connection.execute(select, parameters)
    try:
        for row in cursor:
            taken.append(row)
            if time.perf_counter() > end:
                return taken, False
        return taken, True
    finally:
        cursor.close()
