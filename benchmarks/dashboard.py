"""What a writer of a run feels of the live page: its time with three tabs open, beside its time with none.

Two writers: one trains as `fairwave run small` does; the other has nothing to compute between rounds, which is the worst
case, since every commit may then meet a read. Turns with and without tabs alternate, so that a busy machine slows both
alike. A tab is an open event stream that is read as it comes.

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
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

import fairwave
from fairwave.engine.round_record import FROM_PLAN, PER_DEVICE, Arrays
from fairwave.runs.history import Session
from fairwave.runs.order import Order, Track
from fairwave.runs.session import run
from fairwave.runs.store import RunStore

TABS, DEVICES = 3, 10
STATE_BYTES = 500_000
"""The checkpoint of a small model."""
_DRAW = np.random.default_rng(0)
SESSION = Session("2026-01-02T03:04:05+00:00", "benchmark", "a machine", "{}")
STARTS = 5
"""Rounds of a training run that are not timed: the first compiles, and tabs have to find the run."""


def main() -> None:
    """Print medians and ratios, turn by turn, for both writers."""
    with tempfile.TemporaryDirectory() as name, _page(Path(name)) as (port, token):
        _compare("trains", _training, 8, 80, Path(name), port, token)
        _compare("computes nothing", _storing, 16, 150, Path(name), port, token)


def _compare(
    said: str, write: Callable[[Path, int], float], turns: int, rounds: int, folder: Path, port: int, token: str
) -> None:
    took: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(turns + 1):
        for watched in (False, True) if turn % 2 else (True, False):
            name = f"{write.__name__}-{turn}-{watched}"
            with _tabs(port, token, name if watched else None):
                seconds = write(folder / name, rounds)
            took[watched] += [seconds] if turn else []  # the first turn warms up
    ratios = [one / other for one, other in zip(took[True], took[False], strict=True)]
    alone, beside = (statistics.median(took[watched]) * 1e3 for watched in (False, True))
    print(f"a writer that {said}, {turns} turns of {rounds} rounds:")
    print(f"  {alone:.2f} ms a round with no tab, {beside:.2f} ms with {TABS}")
    print(f"  ratio {statistics.median(ratios):.3f} (median of turns; {min(ratios):.3f} to {max(ratios):.3f})")


def _training(folder: Path, rounds: int) -> float:
    """Seconds a round of a run that trains."""
    order, stored_at = Order(fairwave.load_scenario("small"), ("proposed",), (0,), rounds), []
    run(order, folder, "benchmark", lambda step: stored_at.append(time.perf_counter()))
    return (stored_at[-1] - stored_at[STARTS]) / (len(stored_at) - 1 - STARTS)


def _storing(folder: Path, rounds: int) -> float:
    """Seconds a round of a run whose rounds are stored one after the other."""
    folder.mkdir()
    order, track, draw = (
        Order(fairwave.load_scenario("small"), ("proposed",), (0,), rounds),
        Track("proposed", 0),
        _DRAW,
    )
    store = RunStore.create(folder, order)
    store.extend(order, SESSION)
    store.begin(track, b"data", {"distance_m": draw.random(DEVICES), "samples": np.ones((DEVICES, 10), int)})
    time.sleep(1.0)  # until the tabs have found it
    begin = time.perf_counter()
    for number in range(rounds):
        store.append(track, number, _arrays(), [], draw.bytes(STATE_BYTES), ended=None)
    seconds = time.perf_counter() - begin
    store.close()
    return seconds / rounds


def _arrays() -> Arrays:
    """What a round stores, made up."""
    arrays = {name: _DRAW.random(DEVICES) for name in (*FROM_PLAN, *PER_DEVICE)}
    arrays |= {name: np.zeros(DEVICES, bool) for name in ("outage", "late", "cheating")}
    arrays |= {name: np.ones(DEVICES, bool) for name in ("participating", "delivered")}
    return arrays | {name: np.array(0.5) for name in ("global_loss", "test_accuracy", "membership_auc")}


@contextlib.contextmanager
def _page(folder: Path) -> Iterator[tuple[int, str]]:
    """`fairwave ui` for a folder: its port and token."""
    token = "a token for this benchmark alone".replace(" ", "-")
    command = [sys.executable, "-m", "fairwave", "ui", str(folder), "--no-open", "--port", "0", "--token", token]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=unbuffered) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split(":")[3].split("/")[0])
        try:
            yield port, token
        finally:
            process.kill()


@contextlib.contextmanager
def _tabs(port: int, token: str, name: str | None) -> Iterator[None]:
    """Tabs that are open while a run is written; none without a name."""
    closing = threading.Event()
    tabs = (
        [] if name is None else [threading.Thread(target=_tab, args=(port, token, name, closing)) for _ in range(TABS)]
    )
    for tab in tabs:
        tab.start()
    yield
    closing.set()
    for tab in tabs:
        tab.join()


def _tab(port: int, token: str, name: str, closing: threading.Event) -> None:
    """One tab: it opens the run's page as soon as there is one, and reads its news."""
    heard = 0
    while not closing.is_set() and not heard:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/events?{urlencode({'run': name, 'token': token})}")
        answer = connection.getresponse()
        while not closing.is_set():
            line = answer.readline()
            if b'"removed"' in line and not heard:
                break  # not there yet
            heard += b'"tested": [0' in line
        connection.close()
        time.sleep(0.1)
    assert heard, "a tab saw no round"


if __name__ == "__main__":
    main()
