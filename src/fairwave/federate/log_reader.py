"""Following a federation's log while it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairwave.errors import FairwaveError, FederationError
from fairwave.federate.log_lines import plain


class LogReader:
    """Reads what is added to the federation's log from now on."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, path.stat().st_size if path.exists() else 0

    def news(self) -> list[dict[str, Any]]:
        """Whole lines that have come since."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as handle:
            handle.seek(self._read)
            whole = handle.read().rpartition(b"\n")[0]
        if not whole:
            return []
        self._read += len(whole) + 1
        return [json.loads(line) for line in whole.splitlines()]


def failure_in(line: dict[str, Any]) -> FairwaveError:
    """The error that ended a federation, with the exit code that it had at the access point."""
    kinds = {kind.exit_code: kind for kind in reversed(FairwaveError.__subclasses__())}
    return kinds.get(line.get("exit_code", FederationError.exit_code), FederationError)(plain(line["why"]))
