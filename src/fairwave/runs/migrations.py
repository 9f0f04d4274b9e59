"""Formats of run files, and how an older one becomes the present one.

From format 6 on, every older file is read: a reader migrates a copy in memory, a writer the file itself. A change of
the tables raises FORMAT, adds the step from the one before to STEPS, and keeps a file of the old format for the tests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from fairwave.errors import StoreError
from fairwave.runs.integrity import description_digest, history_and_plugins

FORMAT = 8
OLDEST = 6
"""The oldest format that is read."""


def _checkpoints_in_pieces(connection: sqlite3.Connection) -> None:
    """Format 7 has a table for what stays the same from checkpoint to checkpoint; there is nothing in it yet."""
    connection.execute(
        "CREATE TABLE piece (scheme TEXT, seed INTEGER, digest BLOB, content BLOB NOT NULL, "
        "PRIMARY KEY (scheme, seed, digest)) STRICT"
    )
    _describe_as(connection, 7)


def _models_of_earlier_rounds(connection: sqlite3.Connection) -> None:
    """Format 8 has a table for the models of rounds before the last; no older run has kept any."""
    connection.execute(
        "CREATE TABLE kept (scheme TEXT, seed INTEGER, part INTEGER, round INTEGER, content BLOB NOT NULL, "
        "digest BLOB NOT NULL, PRIMARY KEY (scheme, seed, round, part)) STRICT"
    )
    _describe_as(connection, 8)


def _describe_as(connection: sqlite3.Connection, number: int) -> None:
    """Write the format into the description, whose digest has been found right before."""
    connection.execute("UPDATE run SET value = ? WHERE name = 'format'", (str(number),))
    described = dict(connection.execute("SELECT name, value FROM run WHERE name <> 'digest'"))
    digest = description_digest(described, *history_and_plugins(connection))
    connection.execute("UPDATE run SET value = ? WHERE name = 'digest'", (digest,))


STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {
    6: _checkpoints_in_pieces,
    7: _models_of_earlier_rounds,
}
"""From each older format to the next."""


def readable(path: Path, stored: str) -> int:
    """The number of a stored format; one that cannot be read is refused."""
    number = int(stored) if stored.isdecimal() else -1
    if not OLDEST <= number <= FORMAT:
        raise StoreError(
            f"{path}: format {stored or 'unknown'}, this version reads {OLDEST} to {FORMAT}; run it again, or use the "
            "fairwave that wrote it"
        )
    return number


def migrated(connection: sqlite3.Connection, number: int, *, write: bool) -> sqlite3.Connection:
    """A connection to the run in the present format.

    A reader gets a copy in memory, so that looking at an old file does not change it. Every step keeps digests valid.
    """
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
