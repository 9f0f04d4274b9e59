"""A run's SQLite file: opened, locked, and every failure said in one line."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fairwave.errors import FairwaveError, OutputError, StoreError
from fairwave.private_files import as_private_as_its_folder

FILE = "run.sqlite"
LOCK = "run.lock"
LOOK_AGAIN_S = 0.1
TABLES = """
CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE history (
    session INTEGER PRIMARY KEY, begun TEXT NOT NULL, command TEXT NOT NULL, machine TEXT NOT NULL,
    versions TEXT NOT NULL
) STRICT;
CREATE TABLE plugin (place TEXT PRIMARY KEY, digest TEXT NOT NULL) STRICT;
CREATE TABLE track (
    scheme TEXT, seed INTEGER, fingerprint BLOB NOT NULL, layout BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (scheme, seed)
) STRICT;
CREATE TABLE round (
    scheme TEXT, seed INTEGER, number INTEGER, mean_loss REAL, global_loss REAL, test_accuracy REAL,
    end_reason TEXT, arrays BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (scheme, seed, number)
) STRICT;
CREATE TABLE release (
    scheme TEXT, seed INTEGER, round INTEGER, content TEXT, sender TEXT, audience TEXT, basis TEXT,
    proven_sensitivity REAL, arrays BLOB, PRIMARY KEY (scheme, seed, round, content, sender)
) STRICT;
CREATE TABLE checkpoint (
    scheme TEXT, seed INTEGER, part INTEGER, round INTEGER NOT NULL, content BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (scheme, seed, part)
) STRICT;
CREATE TABLE kept (
    scheme TEXT, seed INTEGER, part INTEGER, round INTEGER, content BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (scheme, seed, round, part)
) STRICT;
CREATE TABLE piece (
    scheme TEXT, seed INTEGER, digest BLOB, content BLOB NOT NULL, PRIMARY KEY (scheme, seed, digest)
) STRICT;
"""

_FULL = ("disk is full", "disk I/O error")


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """An open file that survives a crash at any moment: each transaction is whole or absent.

    A reader, too, opens it for writing where it may: a transaction that a crash cut short has to be rolled back first.
    """
    mode = "rwc" if write else "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    with failures(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=30.0,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, but not always the same
        )
        connection.execute("PRAGMA synchronous = FULL" if write else "PRAGMA query_only = ON")
        return connection


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose structure is damaged."""
    with failures(path):
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if answer != "ok":
        raise damaged(path, str(answer))


def damaged(path: Path, what: str) -> StoreError:
    """The error for a file that cannot be trusted."""
    return StoreError(
        f"{path}: damaged ({' '.join(what.split())}); restore it from a copy, or remove the run and start again"
    )


@contextlib.contextmanager
def failures(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _operational(path, str(error)) from None
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:  # the last two: a value that is not what it was
        raise damaged(path, str(error)) from None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Failures to write a file beside the run's as ours."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); free some space or make it writable, then start it again: "
            "every stored round is safe"
        ) from None


def _operational(path: Path, what: str) -> FairwaveError:
    if any(sign in what for sign in _FULL):
        return OutputError(f"{path}: {what}; free some space, then resume: every stored round is safe")
    if "readonly" in what or "read-only" in what:
        return OutputError(f"{path}: cannot be written, as a run or a rollback needs ({what}); use a writable folder")
    if "locked" in what:
        return StoreError(f"{path}: in use by another program; wait for it, or end it")
    if "unable to open" in what:
        return StoreError(f"{path}: cannot be opened; check that it exists and may be read and written")
    return damaged(path, what)


@contextlib.contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Hold a run for writing, for which another program may take so long to let go of it.

    It is tried twice at least, since `is_held` holds the lock too, if only for microseconds.

    The lock ends with the process, however that ends. Its file stays: removing it would let two programs lock two files
    of the same name.
    """
    path = folder / LOCK
    try:
        handle = path.open("w")
        as_private_as_its_folder(path)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); choose a writable folder with --out"
        ) from None
    with handle:
        end = time.monotonic() + max(wait_s, LOOK_AGAIN_S)
        while not (taken := _take(handle)) and time.monotonic() < end:
            time.sleep(LOOK_AGAIN_S)
        if not taken:
            raise StoreError(f"{folder}: another fairwave is running it; wait for it, or end it")
        yield


def is_held(folder: Path) -> bool:
    """Whether a program holds a run for writing now; never where there are no advisory locks."""
    if os.name != "posix":
        return False
    import fcntl

    try:
        with (folder / LOCK).open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two who look do not see each other
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _take(handle: IO[str]) -> bool:
    if os.name != "posix":  # no advisory locks there: SQLite's own still keep each transaction whole
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
