"""Running the federation of a deployment: submitted to the SuperLink, followed to its end, with a true outcome."""

from __future__ import annotations

import contextlib
import time

from fairwave.errors import FederationError
from fairwave.federate.agreement import read_agreement
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.log_reader import LogReader, failure_in
from fairwave.federate.point_folder import PointFolder
from fairwave.federate.processes import ended_by_sigterm
from fairwave.federate.server_run import OnLogLine, ServerRun
from fairwave.runs.folder import LOG

LOOK_EVERY_S = 0.5
STATUS_EVERY_S = 15.0
MOST_SILENCES = 4
"""Times in a row that the SuperLink may fail to say how the run stands; one of them is a restart."""


def start_federation(point: PointFolder, command: str, on_line: OnLogLine) -> None:
    """Start the federation, or go on with it, and return when it is done; whatever ends it otherwise is raised.

    Flower's own command ends well whatever becomes of a run. What is wrong with the folder, the agreement or the keys
    is found before anything is submitted. Ctrl-C and SIGTERM stop the run.
    """
    agreement = read_agreement(point.agreement)
    KnownKeys(point.known_keys)
    with ended_by_sigterm():
        with ServerRun(point.run, agreement, command):
            pass
        log = LogReader(point.run / LOG)
        config = f'out="{point.run}" known_keys="{point.known_keys}"'
        run = str(point.flwr("run", str(point.app), "--run-config", config)["run-id"])
        try:
            _follow(point, run, log, on_line)
        except KeyboardInterrupt:
            with contextlib.suppress(FederationError):  # there may be nobody left to stop it
                point.flwr("stop", run)
            raise


def _follow(point: PointFolder, run: str, log: LogReader, on_line: OnLogLine) -> None:
    asked_at, silences = time.monotonic(), 0
    while True:
        if _ended(log, on_line):
            return
        if time.monotonic() - asked_at > STATUS_EVERY_S:
            asked_at = time.monotonic()
            try:
                status, silences = _status(point, run), 0
            except FederationError as error:
                status, silences = "running", silences + 1
                if silences > MOST_SILENCES:
                    raise FederationError(
                        f"the SuperLink does not answer any more ({error}); every stored round is safe: start it "
                        "again, then start the federation again"
                    ) from None
            if status.startswith("finished"):
                if _ended(log, on_line):
                    return
                raise FederationError(
                    f"the access point's program ended without a result (Flower says '{status}'); the SuperLink's log "
                    "has why; every stored round is safe"
                )
        time.sleep(LOOK_EVERY_S)


def _ended(log: LogReader, on_line: OnLogLine) -> bool:
    """Whether the log says that the federation is done; if it failed, that is raised."""
    for line in log.news():
        on_line(line)
        if line["event"] == "failed":
            raise failure_in(line)
        if line["event"] == "finished":
            return True
    return False


def _status(point: PointFolder, run: str) -> str:
    return str(point.flwr("list", "--run-id", run)["runs"][0]["status"])
