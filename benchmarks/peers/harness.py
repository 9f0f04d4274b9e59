"""Candidates as processes: started, asked for rounds within a time limit, and ended whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from peers.candidate import STARTED, descendants, memory_mb
from peers.environments import HERE, ROOT, Failed

READY_LIMIT_S, TURN_LIMIT_S, END_LIMIT_S, GRACE_S = 300.0, 300.0, 60.0, 5.0
FAILURES = (Failed, OSError, subprocess.SubprocessError, ValueError, KeyError)
"""Of one candidate: an environment that cannot be made, a process that ends or hangs, an answer that is none."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One way to do a job."""

    name: str
    label: str
    environment: str
    program: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    same_job: bool = True
    """It does exactly the job, so that its accuracy must be the others'."""
    limit: str = "sgemm"
    """The candidate whose rate of matrix products bounds this one's."""


class Running:
    """A candidate's process, from start to end."""

    def __init__(self, command: Sequence[str], variables: dict[str, str], log: Path) -> None:
        self._log = log
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._begun = time.perf_counter()
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=HERE,
                env=variables | {STARTED: repr(time.time())},
                start_new_session=True,
            )
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self._lines.put(line)
        self._lines.put(None)

    def hear(self, limit_s: float) -> dict[str, Any]:
        """The next line that is an answer; what libraries print before the candidate has its wire is not."""
        deadline = time.perf_counter() + limit_s
        while time.perf_counter() < deadline:
            ended = self._process.poll() is not None  # its children may hold the stream open
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=1.0)
                if line is not None and line.startswith("{"):
                    return dict(json.loads(line))
                ended = line is None
            if ended:
                raise Failed(self.last_words())
        raise Failed(f"silent for {limit_s:.0f} s")

    def rounds(self, count: int) -> list[float]:
        """Seconds of each of so many rounds."""
        if self._process.stdin is None or self._process.poll() is not None:
            raise Failed(self.last_words())
        try:
            self._process.stdin.write(f"{count}\n")
            self._process.stdin.flush()
        except OSError:
            raise Failed(self.last_words()) from None
        return [float(seconds) for seconds in self.hear(TURN_LIMIT_S)["seconds"]]

    def finish(self) -> dict[str, Any]:
        """What it says at last, after which it may take its time to end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        told = self.hear(END_LIMIT_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_LIMIT_S)
        return told

    def wait(self, limit_s: float) -> tuple[float, float]:
        """Seconds from its start to its end, and the most megabytes of all its processes, looked at twice a second."""
        most, deadline = 0.0, self._begun + limit_s
        while time.perf_counter() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self._process.wait(0.5):
                    raise Failed(self.last_words())
                return time.perf_counter() - self._begun, most
            most = max(most, memory_mb(self._process.pid))
        raise Failed(f"not done after {limit_s:.0f} s")

    def last_words(self) -> str:
        """Its last line of errors."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip().replace(f"{ROOT}/", "") if lines else f"exit status {self._process.returncode}"

    def kill(self) -> None:
        """End it and all its processes, by their ids: first asked, then made to."""
        root = self._process.pid
        for kind in (signal.SIGTERM, signal.SIGKILL):
            for pid in [*descendants(root), *([] if self._process.poll() is not None else [root])]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
            deadline = time.perf_counter() + GRACE_S
            while (self._process.poll() is None or descendants(root)) and time.perf_counter() < deadline:
                time.sleep(0.05)
