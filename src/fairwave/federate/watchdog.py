"""Clears up after a program that was killed and could not do so itself: the programs that it began, and their keys.

A watchdog is a process of its own that waits for its parent to end: the pipe between them closes, however that happens.
It is this file, run by itself, so that it takes little memory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from fairwave.federate.processes import end_sessions

_DISMISSED = b"dismissed"


class Watchdog:
    """Ends the sessions that it watches, and removes a folder, when this process ends without dismissing it."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, session: int) -> None:
        """A session that is to end with this process."""
        self._tell(str(session).encode())

    def dismiss(self) -> None:
        """All is cleared up."""
        self._tell(_DISMISSED)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, word: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + b"\n")
        self._process.stdin.flush()


def _wait(folder: Path) -> None:
    words = [line.strip() for line in sys.stdin.buffer]
    if words[-1:] != [_DISMISSED]:
        end_sessions([int(word) for word in words])
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _wait(Path(sys.argv[1]))
