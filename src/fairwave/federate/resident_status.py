"""What a resident device writes down about its connection: for whoever watches it, and for its own next start."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from fairwave.private_files import replace_file

STATUS = "connection.json"


@dataclasses.dataclass(frozen=True)
class ConnectionStatus:
    """The standing of a connection."""

    connected: bool
    node: int | None
    """The SuperLink's number for the device, now or when it was last connected."""
    time: float
    """When this was so, in seconds since 1970."""


def write_status(folder: Path, status: ConnectionStatus) -> None:
    """Replace what was written before in a device's own folder."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(folder / STATUS, json.dumps(dataclasses.asdict(status)).encode())


def read_status(folder: Path) -> ConnectionStatus | None:
    """What was last written; None if there is nothing that can be read."""
    try:
        held = json.loads((folder / STATUS).read_bytes())
        node = held["node"]
        if node is not None and not (type(node) is int and 0 <= node < 2**64):
            return None
        return ConnectionStatus(bool(held["connected"]), node, float(held["time"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
