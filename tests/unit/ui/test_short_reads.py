"""A reader that no writer feels: what it holds, for how long, and what it says when it cannot read."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fairwave.errors import StoreError
from fairwave.ui import short_reads
from fairwave.ui.short_reads import BusyError, CutShortError, RemovedError, ShortReads


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "run.sqlite"
    with sqlite3.connect(made) as writer:
        writer.execute("CREATE TABLE round (number INTEGER, arrays BLOB)")
        writer.executemany("INSERT INTO round VALUES (?, zeroblob(20000))", [(number,) for number in range(40)])
    writer.close()
    return made


def impatient(path: Path) -> sqlite3.Connection:
    """A writer that fails if anybody holds a lock in the moment in which it commits."""
    return sqlite3.connect(path, timeout=0.0, isolation_level=None)


ALL = "SELECT number, arrays FROM round"


def test_a_read_that_stopped_early_holds_nothing(path, monkeypatch):
    monkeypatch.setattr(short_reads, "LONGEST_S", 0.0)
    reads, writer = ShortReads(path), impatient(path)
    rows, whole = reads.some_rows(ALL)
    assert len(rows) == 1 and not whole
    writer.execute("INSERT INTO round VALUES (40, NULL)")
    reads.rows("SELECT number FROM round")
    reads.at_one_moment(lambda connection: connection.execute(ALL).fetchone())
    writer.execute("INSERT INTO round VALUES (41, NULL)")


def test_an_open_read_would_be_felt(path):
    """The mutant: the same query, left open, keeps the writer from committing."""
    reader, writer = sqlite3.connect(path), impatient(path)
    cursor = reader.execute(ALL)
    cursor.fetchone()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        writer.execute("INSERT INTO round VALUES (40, NULL)")
    cursor.close()
    writer.execute("INSERT INTO round VALUES (40, NULL)")


def test_a_long_read_ends_in_time(path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(short_reads.time, "perf_counter", lambda: 0.002 * next(clock))
    rows, whole = ShortReads(path).some_rows(ALL)
    assert len(rows) == 3 and not whole  # after 2, 4 and 6 ms
    rows, whole = ShortReads(path).some_rows("SELECT number FROM round WHERE number > 37")
    assert rows == [(38,), (39,)] and whole


def test_nothing_can_be_written(path):
    with pytest.raises(StoreError, match="ended in the middle of a write"):
        ShortReads(path).rows("DELETE FROM round")
    assert len(ShortReads(path).rows("SELECT number FROM round")) == 40


def test_the_version_changes_with_the_file_alone(path):
    reads, writer = ShortReads(path), impatient(path)
    before = reads.version()
    assert reads.version() == before
    writer.execute("INSERT INTO round VALUES (40, NULL)")
    assert reads.version() != before


def test_a_writer_that_commits_is_waited_for_without_a_lock(path, monkeypatch):
    monkeypatch.setattr(short_reads, "WAIT_S", 0.05)
    reads, writer = ShortReads(path), impatient(path)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BusyError):
        reads.rows(ALL)
    writer.execute("INSERT INTO round VALUES (40, NULL)")
    writer.execute("COMMIT")
    assert len(reads.rows(ALL)) == 41


KILLED = """
import os, sqlite3, sys
writer = sqlite3.connect(sys.argv[1], isolation_level=None)
writer.execute("PRAGMA cache_size = 2")
writer.execute("BEGIN IMMEDIATE")
for number in range(40):
    writer.execute("UPDATE round SET arrays = randomblob(20000) WHERE number = ?", (number,))
os.kill(os.getpid(), 9)
"""


def test_a_write_that_was_cut_short_is_left_to_the_owner(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    journal = path.with_name("run.sqlite-journal")
    before = path.read_bytes(), journal.read_bytes()
    with pytest.raises(CutShortError, match="fairwave runs show"):
        ShortReads(path).rows(ALL)
    assert (path.read_bytes(), journal.read_bytes()) == before
    owner = sqlite3.connect(path)
    assert owner.execute("SELECT COUNT(*) FROM round").fetchone() == (40,)
    assert len(ShortReads(path).rows(ALL)) == 40


def test_what_cannot_be_read_is_said(path, tmp_path):
    with pytest.raises(RemovedError, match="was removed"):
        ShortReads(tmp_path / "nothing.sqlite").version()
    (tmp_path / "noise.sqlite").write_bytes(os.urandom(5_000))
    with pytest.raises(StoreError, match="damaged"):
        ShortReads(tmp_path / "noise.sqlite").version()
    reads = ShortReads(path)
    shutil.copy(path, tmp_path / "other.sqlite")
    os.truncate(tmp_path / "other.sqlite", 8_192)
    with pytest.raises(StoreError, match="damaged"):
        ShortReads(tmp_path / "other.sqlite").rows(ALL)
    assert len(reads.rows(ALL)) == 40
