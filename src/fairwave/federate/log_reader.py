"""A federation's log as files: following it while it is written, reading all of it, and keeping it small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairwave.errors import FairwaveError, FederationError
from fairwave.federate.log_lines import plain
from fairwave.runs.folder import LOG

LARGEST = 16 * 2**20
"""Bytes at which a new file is begun."""
KEPT = 5
"""Earlier files that are kept: the latest is called `federation.jsonl.1`."""


def rotate_log(folder: Path) -> None:
    """Begin a new file if the log has become large; the oldest is dropped. Only whoever writes the log may do it."""
    path = folder / LOG
    if not path.exists() or path.stat().st_size < LARGEST:
        return
    for number in range(KEPT, 1, -1):
        earlier = _earlier(path, number - 1)
        if earlier.exists():
            earlier.replace(_earlier(path, number))
    path.replace(_earlier(path, 1))


def lines_of(folder: Path) -> Iterator[dict[str, Any]]:
    """All lines of the log that are kept, the oldest first; one that is being written is left out."""
    path = folder / LOG
    for place in [*(_earlier(path, number) for number in range(KEPT, 0, -1)), path]:
        if place.exists():
            yield from _lines(place.read_bytes())[0]


class LogReader:
    """Reads what is added to the federation's log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _inode(path) if path.exists() else None
        self._read = path.stat().st_size if path.exists() else 0

    def news(self) -> list[dict[str, Any]]:
        """Whole lines that have come since."""
        found: list[dict[str, Any]] = []
        if not self._path.exists():
            return found
        now = _inode(self._path)
        if self._file is not None and now != self._file:  # a new file was begun: first the rest of the one before
            before = _earlier(self._path, 1)
            if before.exists() and _inode(before) == self._file:
                found += self._rest(before)
            self._read = 0
        self._file = now
        return found + self._rest(self._path)

    def _rest(self, path: Path) -> list[dict[str, Any]]:
        with path.open("rb") as handle:
            handle.seek(self._read)
            lines, size = _lines(handle.read())
        self._read += size
        return lines


def failure_in(line: dict[str, Any]) -> FairwaveError:
    """The error that ended a federation, with the exit code that it had at the access point."""
    kinds = {kind.exit_code: kind for kind in reversed(FairwaveError.__subclasses__())}
    return kinds.get(line.get("exit_code", FederationError.exit_code), FederationError)(plain(line["why"]))


def _lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a piece of log, and how many bytes they are."""
    whole, newline, _ = content.rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()], len(whole) + len(newline)


def _inode(path: Path) -> int:
    return path.stat().st_ino


def _earlier(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
