"""What a writer of a run feels of the live page: its time with three tabs open, beside its time with none.

One program writes two runs in turns, a round of each at a time: one that three tabs watch, and one that the page does
not know of. Whatever else the machine does slows both alike. There is nothing to compute between rounds, which is the
worst case, since every commit may then meet a read. A tab is an open event stream that is read as it comes.

    python benchmarks/dashboard.py
"""

from __future__ import annotations

import contextlib
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

import fairwave
from fairwave.engine.round_record import FROM_PLAN, PER_DEVICE, Arrays
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.history import Session
from fairwave.runs.order import Order, Track
from fairwave.runs.store import RunStore

TABS, ROUNDS, DEVICES = 3, 2_000, 10
STATE_BYTES = 500_000
"""The checkpoint of a small model."""
SESSION = Session("2026-01-02T03:04:05+00:00", "benchmark", "a machine", "{}")
TRACK = Track("proposed", 0)
TOKEN = "a-token-for-this-benchmark-alone"
DRAW = np.random.default_rng(0)


def main() -> None:
    """Print how long a round takes to store with and without tabs, and what the page takes of a processor."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        watched, alone = _store(place / "seen" / "run"), _store(place / "unseen" / "run")
        with _page(place / "seen") as page, _tabs(page.port):
            begin, used = time.perf_counter(), _processor_s(page.process)
            took = _write_both(watched, alone)
            seconds, used = time.perf_counter() - begin, _processor_s(page.process) - used
        watched.close(), alone.close()
    ratios = [one / other for one, other in took]
    print(f"{ROUNDS} rounds of each run in turns, {TABS} tabs on one of them, {seconds:.0f} s")
    for place_of, said in ((1, "no tab"), (0, f"{TABS} tabs")):
        each = [pair[place_of] * 1e3 for pair in took]
        print(f"  {said}: {statistics.median(each):.2f} ms a round (median), {statistics.mean(each):.2f} ms (mean)")
    change = statistics.mean(one for one, _ in took) / statistics.mean(other for _, other in took)
    print(f"  ratio: {statistics.median(ratios):.3f} (median of the pairs), {change:.3f} (of the means)")
    print(f"  the page used {used / seconds:.1%} of a processor")


def _write_both(watched: RunStore, alone: RunStore) -> list[tuple[float, float]]:
    """Seconds for a round of the watched run and of the other, round by round."""
    took = []
    for number in range(ROUNDS):
        arrays, state = _arrays(), DRAW.bytes(STATE_BYTES)
        seconds = {}
        for store in (watched, alone) if number % 2 else (alone, watched):
            begin = time.perf_counter()
            store.append(TRACK, [FinishedRound(number, arrays, [])], state)
            seconds[store] = time.perf_counter() - begin
        took.append((seconds[watched], seconds[alone]))
    return took


def _store(folder: Path) -> RunStore:
    """A run that can be written to."""
    folder.mkdir(parents=True)
    store = RunStore.create(folder, Order(fairwave.load_scenario("small"), ("proposed",), (0,), ROUNDS))
    store.extend(store.order, SESSION)
    store.begin(TRACK, b"data", {"distance_m": DRAW.random(DEVICES), "samples": np.ones((DEVICES, 10), int)})
    return store


def _arrays() -> Arrays:
    """What a round stores, made up."""
    arrays = {name: DRAW.random(DEVICES) for name in (*FROM_PLAN, *PER_DEVICE)}
    arrays |= {name: np.zeros(DEVICES, bool) for name in ("outage", "late", "cheating")}
    arrays |= {name: np.ones(DEVICES, bool) for name in ("participating", "delivered")}
    return arrays | {name: np.array(0.5) for name in ("global_loss", "test_accuracy", "membership_auc")}


class _Page:
    """`fairwave ui` as a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.port = process, int(process.stdout.readline().split(":")[3].split("/")[0])


@contextlib.contextmanager
def _page(folder: Path) -> Iterator[_Page]:
    """The page of a folder, until the end."""
    command = [sys.executable, "-m", "fairwave", "ui", str(folder), "--no-open", "--port", "0", "--token", TOKEN]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=unbuffered) as process:
        try:
            yield _Page(process)
        finally:
            process.kill()


def _processor_s(process: subprocess.Popen[str]) -> float:
    """Seconds of processor time that a process has used, as Linux tells them."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _tabs(port: int) -> Iterator[None]:
    """Tabs that are open, each of which must have been told of rounds at the end."""
    closing, told = threading.Event(), [threading.Event() for _ in range(TABS)]
    tabs = [threading.Thread(target=_tab, args=(port, each, closing)) for each in told]
    for tab in tabs:
        tab.start()
    time.sleep(5.0)  # until the page has loaded what it needs
    yield
    closing.set()
    for tab in tabs:
        tab.join()
    assert all(each.is_set() for each in told), "a tab saw no round"


def _tab(port: int, told: threading.Event, closing: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/events?{urlencode({'run': 'run', 'token': TOKEN})}")
    answer = connection.getresponse()
    while not closing.is_set():
        if b'"tested": [0' in answer.readline():
            told.set()
    connection.close()


if __name__ == "__main__":
    main()
