"""Reads of a run's file that are too short for its writer to notice.

A run's file has a rollback journal: while anybody reads, a writer can prepare a round but not commit it. Every read
here is therefore a transaction of its own, ends after a few milliseconds with its rows copied out, and waits without
any lock while the writer commits. The connection is read-only: it writes nothing, and rolls nothing back.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fairwave.errors import StoreError
from fairwave.runs.database import damaged

LONGEST_S = 0.005
"""A read that has more to fetch stops after this long, and is continued in a transaction of its own."""
WAIT_S = 0.5
"""How long a read waits for a writer that commits."""
Row = tuple[Any, ...]
Answer = TypeVar("Answer")


class BusyError(StoreError):
    """A writer is committing; look again later."""


class CutShortError(StoreError):
    """A program ended in the middle of a write, which nobody has rolled back yet."""


class RemovedError(StoreError):
    """The file is not there any more."""


class ShortReads:
    """A read-only connection to a run's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = self._answered(self._opened)

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=WAIT_S,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, but not always the same
        )

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def version(self) -> int:
        """A number that changes whenever another program has changed the file."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def rows(self, select: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query that has few."""
        return self._answered(lambda: self._connection.execute(select, parameters).fetchall())

    def some_rows(self, select: str, parameters: Sequence[object] = ()) -> tuple[list[Row], bool]:
        """Rows of a query that may have many, at least one if there are any; and whether these are all."""
        return self._answered(lambda: self._taken(select, parameters))

    def _taken(self, select: str, parameters: Sequence[object]) -> tuple[list[Row], bool]:
        end, taken = time.perf_counter() + LONGEST_S, []
        cursor = self._connection.execute(select, parameters)
        try:
            for row in cursor:
                taken.append(row)
                if time.perf_counter() > end:
                    return taken, False
            return taken, True
        finally:
            cursor.close()  # which ends the transaction

    def at_one_moment(self, read: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Several small queries that have to agree with each other."""

        def agreed() -> Answer:
            self._connection.execute("BEGIN")
            try:
                return read(self._connection)
            finally:
                self._connection.execute("ROLLBACK")

        return self._answered(agreed)

    def _answered(self, read: Callable[[], Answer]) -> Answer:
        try:
            return read()
        except sqlite3.OperationalError as error:
            raise self._failure(error) from None
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise damaged(self.path, str(error)) from None

    def _failure(self, error: sqlite3.OperationalError) -> StoreError:
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return BusyError(f"{self.path}: in use by another program; wait for it, or end it")
            case sqlite3.SQLITE_READONLY:
                return CutShortError(
                    f"{self.path}: a program ended in the middle of a write; resume the run, or look at it with "
                    "'fairwave runs show', which rolls that write back"
                )
            case sqlite3.SQLITE_CANTOPEN if not self.path.exists():
                return RemovedError(f"{self.path}: was removed; see 'fairwave runs list'")
            case sqlite3.SQLITE_CANTOPEN:
                return StoreError(f"{self.path}: cannot be opened; check that it may be read")
        return damaged(self.path, str(error))
