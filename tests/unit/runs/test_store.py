"""The store: what is written comes back, what is damaged is refused, what cannot be written is said."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave.errors import OutputError, StoreError
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.privacy.ledger import event as ledger_event
from fairwave.runs import finished_round
from fairwave.runs import store as store_module
from fairwave.runs.database import FILE, LOCK, is_held, locked
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.folder import holds_run
from fairwave.runs.history import Session
from fairwave.runs.order import Order, Track
from fairwave.runs.seal import FILE as SEAL
from fairwave.runs.store import RunStore

SESSION = Session("2026-01-02T03:04:05+00:00", "fairwave run small", "a machine", '{"python": "3.11"}')
TRACKS = (Track("proposed", 0), Track("max_power", 0))


def arrays(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    loss = np.where(np.arange(3) == 1, np.nan, draw.random(3))
    return {"loss": loss, "global_loss": draw.random(()), "test_accuracy": np.float32(0.5), "energy_j": draw.random(3)}


def event(seed: int) -> ReleaseEvent:
    return ledger_event("model", "access point", np.arange(3), np.random.default_rng(seed).random(3))


def filled(folder: Path, rounds: int = 4, state_bytes: int = 9_000) -> Path:
    order = Order(fairwave.load_scenario("small"), ("proposed", "max_power"), (0,), 9)
    store = RunStore.create(empty(folder), order)
    store.extend(order, SESSION)
    for track in TRACKS:
        store.begin(track, b"data", {"distance_m": np.arange(3.0)})
        for number in range(rounds):
            state = np.random.default_rng(number).bytes(state_bytes)
            spans = ((50, 3_000), (3_000, 6_000)) if state_bytes > 6_000 else ()
            store.append(track, [FinishedRound(number, arrays(number), [event(number)])], state, spans)
    store.close()
    return folder


def content(folder: Path) -> list[object]:
    """Everything that a reader could get."""
    store = RunStore(folder)
    seen: list[object] = [store.about, store.order, store.history(), store.plugins()]
    for track in TRACKS:
        seen += [str(store.summary(track)), store.checkpoint(track), str(store.layout(track.seed))]
        seen += [str(sorted((name, value.tobytes()) for name, value in r.items())) for r in store.records(track)]
    store.close()
    return seen


def test_what_is_written_comes_back(tmp_path: Path):
    store = RunStore(filled(tmp_path / "a"))
    assert store.order.schemes == ("proposed", "max_power") and store.order.rounds == 9
    summary = store.summary(TRACKS[0])
    assert (summary.rounds, summary.ended) == (4, None)
    assert summary.mean_loss == pytest.approx(np.nanmean(arrays(3)["loss"]))
    for number, record in enumerate(store.records(TRACKS[1])):
        for name, value in arrays(number).items():
            np.testing.assert_array_equal(record[name], value)
    assert store.checkpoint(TRACKS[0]) == np.random.default_rng(3).bytes(9_000)
    assert store.summary(Track("priced", 7)).rounds == 0 and store.checkpoint(Track("priced", 7)) is None


def test_rounds_that_are_stored_together_are_those_that_are_stored_one_by_one(tmp_path: Path):
    one_by_one, together = filled(tmp_path / "a"), filled(tmp_path / "b", rounds=1)
    store = RunStore(together, write=True)
    later = [FinishedRound(number, arrays(number), [event(number)]) for number in (1, 2, 3)]
    for track in TRACKS:
        store.append(track, later, np.random.default_rng(3).bytes(9_000), ((50, 3_000), (3_000, 6_000)))
    store.close()
    assert content(together) == content(one_by_one)


def test_a_large_checkpoint_is_split_and_joined(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(finished_round, "PART", 1_000)
    assert RunStore(filled(tmp_path / "a")).checkpoint(TRACKS[0]) == np.random.default_rng(3).bytes(9_000)


def damage(original: Path, folder: Path, start: int, length: int, draw: np.random.Generator) -> None:
    shutil.copytree(original, folder)
    content = bytearray((folder / FILE).read_bytes())
    noise = draw.integers(1, 256, min(length, len(content) - start), dtype=np.uint8)
    content[start : start + length] = (np.frombuffer(content[start : start + length], np.uint8) ^ noise).tobytes()
    (folder / FILE).write_bytes(content)


def places(size: int) -> list[tuple[int, int]]:
    """Ranges all over the file: every 97th byte alone, and longer stretches."""
    single = [(start, 1) for start in (*range(100), *range(100, size, 97))]
    return single + [
        (start, length) for length in (16, 512, 4096, 20_000) for start in range(0, size, max(1_500, length))
    ]


def test_a_program_that_only_looks_keeps_no_writer_out(tmp_path: Path):
    """`is_held` holds the lock for a moment: a writer that starts in just that moment tries again."""
    with locked(tmp_path):
        pass
    with (tmp_path / LOCK).open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        release = threading.Timer(0.03, fcntl.flock, (looking, fcntl.LOCK_UN))
        release.start()
        with locked(tmp_path):
            assert is_held(tmp_path)
        release.join()
        fcntl.flock(looking, fcntl.LOCK_SH)
        with pytest.raises(StoreError, match="another fairwave"), locked(tmp_path):
            pass


@pytest.mark.parametrize("sealed", [True, False])
def test_damage_anywhere_is_detected(tmp_path: Path, sealed: bool):
    """After a crash there is no seal: damage is then refused, or lies in bytes of SQLite's pages that nobody reads."""
    original = filled(tmp_path / "a")
    if not sealed:
        (original / SEAL).unlink()
    truth, draw, detected, harmless = content(original), np.random.default_rng(0), 0, 0
    for index, (start, length) in enumerate(places((original / FILE).stat().st_size)):
        broken = tmp_path / f"broken{index}"
        damage(original, broken, start, length, draw)
        try:
            assert content(broken) == truth
            harmless += 1
        except StoreError as error:
            detected += 1
            assert "\n" not in str(error)
        shutil.rmtree(broken)
    assert detected > 300
    assert harmless == 0 or not sealed


def test_without_the_digests_damage_would_pass(tmp_path: Path, monkeypatch):
    """The mutant: a store that trusts SQLite alone returns wrong numbers."""
    original = filled(tmp_path / "a")
    (original / SEAL).unlink()
    truth, draw, fooled = content(original), np.random.default_rng(0), 0
    monkeypatch.setattr(store_module, "verify", lambda *arguments: None)
    for index, (start, length) in enumerate(places((original / FILE).stat().st_size)[::7]):
        broken = tmp_path / f"broken{index}"
        damage(original, broken, start, length, draw)
        with contextlib.suppress(Exception):
            fooled += content(broken) != truth
        shutil.rmtree(broken)
    assert fooled > 5


@pytest.mark.parametrize("keep", [0, 100, 5_000, 20_000])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: int):
    folder = filled(tmp_path / "a")
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"damaged|no such table"):
        RunStore(folder)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE round SET test_accuracy = 0.99 WHERE number = 2",
        "DELETE FROM round WHERE number = 1",
        "DELETE FROM round WHERE number = 3",
        "UPDATE release SET arrays = x'0000' WHERE round = 0",
        "DELETE FROM release WHERE round = 3",
        "DELETE FROM checkpoint",
        "UPDATE checkpoint SET round = 1",
        "UPDATE run SET value = '10' WHERE name = 'rounds'",
        "UPDATE track SET layout = x'00'",
        "DELETE FROM track WHERE scheme = 'proposed'",
        "UPDATE round SET end_reason = 'target_loss' WHERE number = 3",
        "UPDATE history SET command = 'fairwave run another'",
        "DELETE FROM history",
        "INSERT INTO plugin VALUES ('mine.py', 'digest')",
        "UPDATE piece SET content = x'00' WHERE scheme = 'proposed'",
        "DELETE FROM piece WHERE scheme = 'proposed'",
        "INSERT INTO piece VALUES ('proposed', 0, x'00', x'00')",
        "UPDATE piece SET scheme = 'another' WHERE scheme = 'proposed'",
    ],
)
def test_a_tidy_forgery_is_refused(tmp_path: Path, change: str):
    folder = filled(tmp_path / "a")
    (folder / SEAL).unlink()
    connection = sqlite3.connect(folder / FILE)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="damaged"):
        RunStore(folder)
    (folder / SEAL).touch()  # as a full disk leaves one: whoever would write does not vouch for the forgery
    with pytest.raises(StoreError, match="damaged"):
        RunStore(folder, write=True)
    assert (folder / SEAL).stat().st_size == 0


def test_a_full_disk_keeps_all_stored_rounds(tmp_path: Path):
    folder = filled(tmp_path / "a")
    store = RunStore(folder, write=True)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OutputError, match="free some space"):
        store.append(TRACKS[0], [FinishedRound(4, arrays(4), [event(4)])], b"x" * 500_000)
    store.close()
    before = filled(tmp_path / "b")
    assert content(folder) == content(before)


def test_a_disk_that_is_full_at_the_seal_leaves_none_and_the_run_goes_on(tmp_path: Path, monkeypatch):
    """The seal is written last. Half of one, or an empty one, must never make a sound run look damaged."""
    folder = filled(tmp_path / "a")
    store = RunStore(folder, write=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", _no_space)
        with pytest.raises(OutputError, match=r"run.seal: cannot be written .*the run itself is safe"):
            store.close()
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("run.seal")) == []
    before = content(folder)
    RunStore(folder, write=True).close()
    assert (folder / "run.seal").stat().st_size == 129
    assert content(folder) == before


@pytest.mark.parametrize("length", [0, 1, 128])
def test_a_seal_that_was_cut_short_counts_as_none(tmp_path: Path, length: int):
    folder = filled(tmp_path / "a")
    seal, before = folder / "run.seal", content(folder)
    seal.write_bytes(seal.read_bytes()[:length])
    assert content(folder) == before
    RunStore(folder, write=True).close()
    assert seal.stat().st_size == 129 and content(folder) == before


def _no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_two_writers_are_kept_apart(tmp_path: Path):
    folder = filled(tmp_path / "a")
    with locked(folder), pytest.raises(StoreError, match="another fairwave"), locked(folder):
        pass
    with locked(folder):
        pass


def test_changed_data_are_noticed(tmp_path: Path):
    store = RunStore(filled(tmp_path / "a"), write=True)
    store.begin(TRACKS[0], b"data", {})
    for other in (TRACKS[0], Track("priced", 0), Track("proposed", 5)):  # the same track, seed, or another seed
        with pytest.raises(StoreError, match="have changed"):
            store.begin(other, b"other", {})
    data = b"d" * 16
    fresh = RunStore.create(empty(tmp_path / "b"), store.order, {})
    fresh.begin(Track("proposed", 0), data + b"fleet of seed 0", {"a": np.ones(1)})
    fresh.begin(Track("proposed", 1), data + b"fleet of seed 1", {"a": np.ones(1)})


def empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_reader_holds_its_moment_and_its_lock(tmp_path: Path):
    """What it reads is what it has checked; checking the seal must not drop SQLite's lock."""
    folder = filled(tmp_path / "a")
    reader = RunStore(folder)
    assert (folder / SEAL).exists()
    program = (
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try:\n    c.execute('BEGIN EXCLUSIVE')\n    print('taken')\nexcept Exception as e:\n    print(e)"
    )
    asked = [sys.executable, "-c", program, str(folder / FILE)]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "database is locked\n"
    reader.close()
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "taken\n"


def test_a_start_that_was_cut_short_leaves_nothing_in_the_way(tmp_path: Path, monkeypatch):
    folder = empty(tmp_path / "a")
    order = Order(fairwave.load_scenario("small"), ("proposed",), (0,), 1)
    monkeypatch.setattr(store_module, "_describe", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        RunStore.create(folder, order, {})
    assert not (folder / FILE).exists() and not holds_run(folder)
    monkeypatch.undo()
    assert RunStore.create(folder, order, {}).order == order
    assert sorted(path.name for path in folder.iterdir()) == [FILE]


def test_no_run_is_said(tmp_path: Path):
    with pytest.raises(StoreError, match="no run there"):
        RunStore(tmp_path)
