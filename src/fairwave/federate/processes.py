"""Programs that run for a while: each in a session of its own, logged to a file, and ended with all that it began."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_GRACE_S = 8.0

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
"""Flower calls home and installs packages unless told not to."""
_LOOK_FOR_TASKS_EVERY_S = "0.2"


def surroundings(flower_home: Path) -> dict[str, str]:
    """The environment of Flower's programs: their own settings, nothing sent home, this Python's programs first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    own = {"FLWR_HOME": str(flower_home), "PATH": path, "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": _LOOK_FOR_TASKS_EVERY_S}
    return {**os.environ, **QUIET, **own}


class Program:
    """One that runs until it is ended."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._family: dict[int, str] = {}
        with log.open("ab") as handle:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).parent / command[0]), *command[1:]],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Also that of its session."""
        return self._process.pid

    def ended(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        """So that it can say goodbye."""
        self._family = descendants(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def end(self) -> None:
        """See that it and all that it began are gone; some of that is in sessions of its own."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        _kill(self._family)


def end_sessions(leaders: Sequence[int]) -> None:
    """See that sessions of programs, and all that these began, are gone, whoever their parent was."""
    families = {pid: {pid: _begun(pid), **descendants(pid)} for pid in leaders}
    for pid in leaders:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not any(_begun(pid) for pid in leaders), _GRACE_S)
    for pid, family in families.items():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _kill(family)


def _kill(family: dict[int, str]) -> None:
    """Kill processes that began when it says here, and what they begin meanwhile."""
    while left := {pid for pid, begun in family.items() if begun and _begun(pid) == begun}:
        for pid in left:
            family |= descendants(pid)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def descendants(pid: int) -> dict[int, str]:
    """Processes that one has begun, and those that these have, with when they began; none where there is no /proc."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, unseen = dict[int, str](), [pid]
    while unseen:
        children = parents.get(unseen.pop(), [])
        unseen += children
        found |= {child: _begun(child) for child in children}
    return {child: begun for child, begun in found.items() if begun}


def _begun(pid: int) -> str:
    """When a process began, which with its number names it; empty if it is gone, or only its parent has not noticed."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def end_all(programs: Sequence[Program]) -> None:
    """End programs together, so that their grace is one."""
    for program in programs:
        program.ask_to_end()
    for program in programs:
        program.end()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody uses now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM leaves through the same door as Ctrl-C, so that nothing is left running."""

    def leave(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
