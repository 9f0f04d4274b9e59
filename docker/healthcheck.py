"""Whether this container does its part in a federation: exit code 0 if it does, 1 if not, with one line that says why.

The environment variable FAIRWAVE_ROLE names the part. The working directory is the folder of the kit that the container
serves, as `fairwave federate init` wrote it. Only the device's check needs fairwave itself.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

PATIENCE_S = 5.0
SILENCE_S = 3600.0
"""How old the newest line of a federation's log may be."""


def main() -> int:
    """Check the role of this container."""
    role = os.environ.get("FAIRWAVE_ROLE", "")
    checks = {"": _runs, "device": _device, "superlink": _superlink, "gate": _gate, "federation": _federation}
    if role not in checks:
        print(f"FAIRWAVE_ROLE: {role!r} is no role; set one of {', '.join(filter(None, checks))}")
        return 1
    try:
        print(checks[role](Path.cwd()))
    except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
        print(f"{role}: {error}")
        return 1
    return 0


def _runs(folder: Path) -> str:
    return "the container runs"


def _device(folder: Path) -> str:
    """The device has heard from the access point within the last minute."""
    command = ["fairwave", "device", "health", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or f"'fairwave device health' ended with {done.returncode}")
    return done.stdout.strip()


def _superlink(folder: Path) -> str:
    return _listens(_port(folder) + 1)


def _gate(folder: Path) -> str:
    return _listens(_port(folder))


def _federation(folder: Path) -> str:
    """The log of the federation is written; a round that takes longer than SILENCE_S needs a higher value."""
    log = folder / "run" / "federation.jsonl"
    silence = time.time() - log.stat().st_mtime
    allowed = float(os.environ.get("FAIRWAVE_SILENCE_S", SILENCE_S))
    if silence > allowed:
        raise ValueError(f"{log}: nothing was written for {silence:.0f} s; FAIRWAVE_SILENCE_S allows {allowed:.0f}")
    last = json.loads(log.read_bytes().splitlines()[-1])
    return f"last event: {last.get('event', 'unknown')}, {silence:.0f} s ago"


def _port(folder: Path) -> int:
    """The gate's port; the SuperLink's is the one after it."""
    return int(tomllib.loads((folder / "kit.toml").read_text("utf-8"))["port"])


def _listens(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
        return f"port {port} answers"


if __name__ == "__main__":
    sys.exit(main())
