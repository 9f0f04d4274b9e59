"""Seeing a loopback deployment through: programs that die are started again, and the run goes on from its store."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from fairwave.errors import ArgumentError, FederationError
from fairwave.federate.agreement import Agreement
from fairwave.federate.log_reader import LogReader, failure_in
from fairwave.federate.loopback import Loopback
from fairwave.federate.processes import ended_by_sigterm
from fairwave.federate.server_run import OnLogLine, ServerRun
from fairwave.runs.folder import LOG, LOGS

MOST_RESTARTS = 3
_LOOK_EVERY_S = 0.5
_NODE_AGAIN_S = 5.0
_STATUS_EVERY_S = 20.0


def federate_on_loopback(
    agreement: Agreement,
    folder: Path,
    command: str,
    on_line: OnLogLine = lambda line: None,
    network: Callable[[Agreement, Path, str], Loopback] = Loopback,
) -> None:
    """Run an agreement into a folder, on processes and sockets of this machine.

    If the SuperLink dies, it is started again; devices come back by themselves, and the run goes on from its store.
    """
    _check_path(folder)
    with ServerRun(folder, agreement, command):
        pass  # whatever is wrong with the folder or the agreement is found before any process starts
    with ended_by_sigterm(), network(agreement, folder, command) as running:
        log = LogReader(folder / LOG)
        for _ in range(MOST_RESTARTS):
            if _followed(running, running.submit(), log, on_line):
                return
            on_line({"event": "restarted"})
            running.start_superlink()
        if _followed(running, running.submit(), log, on_line):
            return
    raise FederationError(f"the SuperLink died {1 + MOST_RESTARTS} times; see {folder / LOGS}")


def _check_path(folder: Path) -> None:
    """Flower takes paths inside quoted settings, which know no escapes."""
    strange = [sign for sign in str(folder.resolve()) if sign in '"\\' or not sign.isprintable()]
    if strange:
        raise ArgumentError(f"--out {folder}: {strange[0]!r} in a path cannot be passed on to Flower; choose another")


def _followed(network: Loopback, run: str, log: LogReader, on_line: OnLogLine) -> bool:
    """Whether the run came to its end; false if the SuperLink died."""
    asked_at = time.monotonic()
    died: dict[int, float] = {}
    while True:
        for line in log.news():
            on_line(line)
            if line["event"] == "finished":
                return True
            if line["event"] == "failed":
                raise failure_in(line)
        if network.superlink is None or network.superlink.ended() is not None:
            return False
        for device, node in list(network.nodes.items()):
            if (
                node.ended() is not None
                and time.monotonic() - died.setdefault(device, time.monotonic()) > _NODE_AGAIN_S
            ):
                network.start_node(device)
                del died[device]
        if time.monotonic() - asked_at > _STATUS_EVERY_S:
            asked_at = time.monotonic()
            _refuse_failed(network, run)
        time.sleep(_LOOK_EVERY_S)


def _refuse_failed(network: Loopback, run: str) -> None:
    """A run can die without a word in its log."""
    try:
        status = network.status(run)
    except FederationError:  # the SuperLink is dying, which is noticed elsewhere
        return
    if status.startswith("finished") and status != "finished:completed":
        raise FederationError(f"the access point's program died ({status}); see {network.logs / 'superlink.log'}")
