"""Formats of run files, and how an older one becomes the present one.

From format 6 on, every older file is read: a reader migrates a copy in memory, a writer the file itself. A change of
the tables raises FORMAT, adds the step from the one before to STEPS, and keeps a file of the old format for the tests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from fairwave.errors import StoreError

FORMAT = 6
OLDEST = 6
"""The oldest format that is read."""

STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""From each older format to the next."""


def migrated(connection: sqlite3.Connection, path: Path, stored: str, *, write: bool) -> sqlite3.Connection:
    """A connection to the run in the present format; a file that cannot be read is refused.

    A reader gets a copy in memory, so that looking at an old file does not change it. Every step keeps digests valid.
    """
    number = int(stored) if stored.isdecimal() else -1
    if not OLDEST <= number <= FORMAT:
        raise StoreError(
            f"{path}: format {stored or 'unknown'}, this version reads {OLDEST} to {FORMAT}; run it again, or use the "
            "fairwave that wrote it"
        )
    if number == FORMAT:
        return connection
    if not write:
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.backup(copy)
        connection.close()
        connection = copy
        connection.execute("BEGIN")
    for step in range(number, FORMAT):
        STEPS[step](connection)
    return connection
