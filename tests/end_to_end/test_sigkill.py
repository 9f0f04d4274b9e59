"""SIGKILL at random moments, again and again: what is resumed ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairwave.runs.database import FILE
from fairwave.runs.session import results
from fairwave.runs.store import RunStore

KILLS = 24
ROUNDS = 60
# Twelve devices with the paper's network: a checkpoint of 5 MB, so that many kills fall into a transaction.
RUN = [
    sys.executable,
    "-m",
    "fairwave",
    "run",
    "small",
    "--rounds",
    str(ROUNDS),
    "--seeds",
    "0..1",
    "--schemes",
    "proposed,max_power",
    "--set",
    "cell.num_devices=12",
    "--set",
    "data.samples_per_device=20",
    "--set",
    "learning.batch_size=4",
    "--set",
    "compute.bits_per_iteration=4000000",
]


def started(folder: Path, cache: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    with log.open("wb") as stream:
        return subprocess.Popen([*RUN, "--out", str(folder)], env=environment, stdout=stream, stderr=stream)


def stored_rounds(file: Path) -> int:
    """Rounds in a run's file; none where it cannot be read at this moment."""
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0.1)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM round").fetchone()[0])
    except sqlite3.Error:
        return 0


def wait_for_a_round(process: subprocess.Popen[bytes], file: Path) -> None:
    """Until the process has stored a round, or has ended."""
    before = stored_rounds(file)
    while process.poll() is None and stored_rounds(file) <= before:
        time.sleep(0.002)


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path: Path):
    unbroken, broken, cache = tmp_path / "unbroken", tmp_path / "broken", tmp_path / "cache"
    log = tmp_path / "log"
    whole = started(unbroken, cache, log)
    assert whole.wait(timeout=600) == 0, log.read_text()
    draw, kills, progress = random.Random(0), 0, []
    while True:
        process = started(broken, cache, log)
        if kills >= KILLS:
            assert process.wait(timeout=600) == 0, log.read_text()
            break
        if kills % 4:  # mostly while it works, sometimes while it starts
            wait_for_a_round(process, broken / FILE)
            time.sleep(draw.uniform(0.0, 0.8))
        else:
            time.sleep(draw.uniform(0.0, 4.0))
        if process.poll() is not None:
            raise AssertionError(f"ended after {kills} kills: {log.read_text()}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        if (broken / FILE).exists() and kills % 4 == 3:
            store = RunStore(broken)  # sound at every moment
            progress.append(sum(store.summary(track).rounds for track in store.order.tracks()))
            store.close()
    assert progress == sorted(progress) and progress[-1] > progress[0]
    ours, theirs = RunStore(broken), RunStore(unbroken)
    assert results(ours).drop_attrs().identical(results(theirs).drop_attrs())
    for track in theirs.order.tracks():
        assert ours.summary(track) == theirs.summary(track) and ours.summary(track).rounds == ROUNDS
        assert ours.checkpoint(track) == theirs.checkpoint(track)
