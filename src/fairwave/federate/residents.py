"""Devices that live in one process: a few threads serve all of them, and one keeps them known to the access point."""

from __future__ import annotations

import contextlib
import functools
import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fairwave.errors import FederationError
from fairwave.federate.answering import Answering
from fairwave.federate.device_file import DeviceFolder
from fairwave.federate.resident import Resident
from fairwave.runs.database import locked

WORKERS = 8
"""Most devices that are served at the same time."""
_BEAT_EVERY_S = 1.0


class Residents:
    """All devices of a process."""

    def __init__(self, folders: Sequence[Path], say: Callable[[str], None] = lambda line: None) -> None:
        """Reads every device's folder and its agreement, so that what is wrong there is found at once."""
        answerings: dict[str, Answering] = {}
        self._folders, self._residents = list[Path](), list[Resident]()
        for each in folders:
            folder = DeviceFolder(each)
            agreed = str(each.resolve() / folder.file.agreement)
            if agreed not in answerings:
                folder.agreement()
                answerings[agreed] = Answering(functools.cache(folder.agreement), keeps_programs=True)
            self._folders.append(folder.node().folder)
            self._residents.append(Resident(folder, answerings[agreed], say))
        self._due = [(0.0, index) for index in range(len(self._residents))]
        self._ready, self._ended = threading.Condition(), False

    def run(self, end: threading.Event) -> None:
        """Serve until the event is set; then every device says goodbye."""
        with self._folders_held():
            threads = [threading.Thread(target=self._serve, daemon=True) for _ in self._residents[:WORKERS]]
            threads.append(threading.Thread(target=self._beat, args=(end,), daemon=True))
            for thread in threads:
                thread.start()
            while not end.wait(1.0):
                if not all(thread.is_alive() for thread in threads):
                    raise FederationError("a thread of the devices has died; start the program again")
            with self._ready:
                self._ended = True
                self._ready.notify_all()
            for resident in self._residents:
                resident.leave()

    @contextlib.contextmanager
    def _folders_held(self) -> Iterator[None]:
        """Two programs that were the same device would answer each other's questions."""
        with contextlib.ExitStack() as held:
            for folder in self._folders:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                held.enter_context(locked(folder))
            yield

    def _serve(self) -> None:
        while (index := self._next()) is not None:
            pause_s = self._residents[index].step()
            with self._ready:
                heapq.heappush(self._due, (time.monotonic() + pause_s, index))
                self._ready.notify()

    def _next(self) -> int | None:
        """The device whose step is due next, once it is; None at the end."""
        with self._ready:
            while not self._ended:
                wait_s = self._due[0][0] - time.monotonic() if self._due else None
                if wait_s is not None and wait_s <= 0.0:
                    return heapq.heappop(self._due)[1]
                self._ready.wait(wait_s)
        return None

    def _beat(self, end: threading.Event) -> None:
        while not end.wait(_BEAT_EVERY_S):
            for resident in self._residents:
                resident.beat()
