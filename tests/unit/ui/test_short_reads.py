"""A reader that no writer feels: it holds no lock, sees one moment, and says what it is when it cannot read."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fairwave.errors import StoreError
from fairwave.runs.database import locked
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


NUMBERS = "SELECT number FROM round"


def numbers_with_a_commit(path: Path, connection: sqlite3.Connection, *, first: list[int]) -> list[sqlite3.Row]:
    """Reads in two steps, between which a writer commits once: the steps see two moments."""
    before = connection.execute("SELECT COUNT(*) FROM round").fetchone()[0]
    if not first:
        first.append(before)
        writer = impatient(path)
        writer.execute("DELETE FROM round WHERE number >= 20")
        writer.close()
    return [before, connection.execute("SELECT COUNT(*) FROM round").fetchone()[0]]


def test_a_writer_commits_in_the_middle_of_a_read_which_is_repeated(path):
    """The writer fails at any lock. The first try counts 40 rounds and then 20, the second counts 20 twice."""
    first: list[int] = []
    found = ShortReads(path).at_one_moment(lambda connection: numbers_with_a_commit(path, connection, first=first))
    assert first == [40] and found == [20, 20]


def test_locks_would_be_felt(path):
    """The mutant: the same read in a transaction, as SQLite offers it, keeps the writer from committing."""
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        numbers_with_a_commit(path, reader, first=[])
    reader.close()


COMMITTING = """
import sqlite3, sys, time
writer, end = sqlite3.connect(sys.argv[1], timeout=0.0, isolation_level=None), time.monotonic() + 1.5
while time.monotonic() < end:
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE round SET number = number + 1, arrays = randomblob(9000 + abs(random()) % 20000)")
    writer.execute("COMMIT")
    time.sleep(0.004)
"""


def test_reads_beside_a_busy_writer_see_one_moment(path):
    """Every commit raises all 40 numbers by one, so that they stay 39 apart. The writer fails at any lock."""
    reads, seen = ShortReads(path), set()
    with subprocess.Popen([sys.executable, "-c", COMMITTING, str(path)]) as writer:
        while writer.poll() is None:
            with contextlib.suppress(CutShortError):  # nothing but commits, for as long as a read waits
                found = [number for (number,) in reads.rows(NUMBERS)]
                assert len(found) == 40 and max(found) - min(found) == 39
                seen.add(min(found))
    assert writer.returncode == 0 and len(seen) > 3


def test_a_long_read_ends_in_time(path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(short_reads.time, "perf_counter", lambda: 0.002 * next(clock))
    rows, whole = ShortReads(path).some_rows(ALL)
    assert len(rows) == 3 and not whole  # after 2, 4 and 6 ms
    rows, whole = ShortReads(path).some_rows("SELECT number FROM round WHERE number > 37")
    assert rows == [(38,), (39,)] and whole


def test_nothing_can_be_written(path):
    with pytest.raises(StoreError, match="readonly"):
        ShortReads(path).rows("DELETE FROM round")
    assert len(ShortReads(path).rows(NUMBERS)) == 40


def test_the_version_changes_with_the_file_alone(path):
    reads, writer = ShortReads(path), impatient(path)
    before = reads.version()
    assert reads.version() == before
    writer.execute("INSERT INTO round VALUES (40, NULL)")
    assert reads.version() != before


def test_a_writer_that_commits_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(short_reads, "WAIT_S", 0.02)
    reads, writer = ShortReads(path), impatient(path)
    with locked(path.parent):
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO round VALUES (40, NULL)")
        with pytest.raises(BusyError):
            reads.rows(ALL)
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


def test_a_write_that_was_cut_short_is_left_to_the_owner(path, monkeypatch):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    journal = path.with_name("run.sqlite-journal")
    before = path.read_bytes(), journal.read_bytes()
    monkeypatch.setattr(short_reads, "WAIT_S", 0.02)
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
        ShortReads(tmp_path / "noise.sqlite").rows(ALL)
    shutil.copy(path, tmp_path / "other.sqlite")
    os.truncate(tmp_path / "other.sqlite", 8_192)
    with pytest.raises(StoreError, match="damaged"):
        ShortReads(tmp_path / "other.sqlite").rows(ALL)
    reads = ShortReads(path)
    assert len(reads.rows(ALL)) == 40
    shutil.copy(path, tmp_path / "new.sqlite")
    (tmp_path / "new.sqlite").replace(path)
    with pytest.raises(RemovedError):
        reads.rows(ALL)
