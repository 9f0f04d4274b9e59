"""How a candidate talks with the harness, line by line: standard library alone, the same in every environment.

    -> {"ready": seconds since the process was started}      after the first round
    <- N                                                     run N rounds
    -> {"seconds": [of each round]}
    <- (end of input)
    -> {"accuracy": on the test samples, "rounds": all that were run, "peak_mb": of all its processes}

Libraries print what they like: the lines go to a copy of standard output that only `Wire` knows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

STARTED = "FAIRWAVE_BENCH_STARTED"
"""Environment variable that says when the harness started this process, in seconds since 1970."""


class Wire:
    """The candidate's end. Make it first of all."""

    def __init__(self) -> None:
        self._started = float(os.environ.get(STARTED, time.time()))
        sys.stdout.flush()
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._rounds = self._left = 0
        self._seconds: list[float] = []
        self._begun = 0.0

    @property
    def left(self) -> int:
        """Rounds of this turn that have not ended."""
        return self._left

    def turn(self) -> bool:
        """Tell that a round has ended, and wait until the next one is asked for; False when there is none."""
        now = time.perf_counter()
        self._rounds += 1
        if self._rounds == 1:
            self.say(ready=time.time() - self._started)
        else:
            self._seconds.append(now - self._begun)
            self._left -= 1
        if self._left == 0:
            if self._seconds:
                self.say(seconds=self._seconds)
            line = sys.stdin.readline().strip()
            if not line:
                return False
            self._left, self._seconds = int(line), []
        self._begun = time.perf_counter()
        return True

    def end(self, accuracy: float | None, root: int | None = None, **more: object) -> None:
        """The last line; `root` is the process whose descendants count as well, left out this one."""
        told = {"accuracy": accuracy, "rounds": self._rounds, "peak_mb": peak_mb(root)}
        self.say(**told, **more)

    def say(self, **told: object) -> None:
        """One line."""
        self._out.write(json.dumps(told) + "\n")
        self._out.flush()


def peak_mb(root: int | None = None) -> float:
    """The most memory that this process has had, and what all others from `root` down have now."""
    own = int(_field(Path("/proc/self/status"), "VmHWM:")) / 1024.0
    return own + memory_mb(root or os.getpid(), but=os.getpid())


def memory_mb(root: int, but: int | None = None) -> float:
    """What a process and all below it have now; of pages that they share, each has its share."""
    pids = [pid for pid in (root, *descendants(root)) if pid != but]
    return sum(int(_field(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")) for pid in pids) / 1024.0


def descendants(root: int) -> list[int]:
    """Processes below one, or of the session that it began, so that those whose parent has ended count too."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if int(entry.name) != root and state != "Z":
            children.setdefault(root if int(session) == root else int(parent), []).append(int(entry.name))
    found: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def _field(path: Path, name: str) -> str:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return "0"
    return next((line.split()[1] for line in lines if line.startswith(name)), "0")
