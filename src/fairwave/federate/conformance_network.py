"""A SuperLink on this machine that waits for one client, whatever it is written in, and checks how it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairwave.errors import ArgumentError, FederationError
from fairwave.federate.agreement import Agreement
from fairwave.federate.app_folder import write_app
from fairwave.federate.conformance import Check
from fairwave.federate.conformance_app import DEVICE
from fairwave.federate.device_file import read_device_file, write_device_file
from fairwave.federate.device_folder import write_device_folder
from fairwave.federate.log_reader import LogReader
from fairwave.federate.loopback import HOST, Loopback
from fairwave.federate.processes import ended_by_sigterm
from fairwave.runs.folder import LOG

NODE = "node-0"
_LOOK_EVERY_S = 0.2


def port_of(endpoint: str) -> int:
    """The port of an endpoint on this machine; others are refused."""
    host, _, port = endpoint.rpartition(":")
    if host not in (HOST, "localhost") or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ArgumentError(
            f"ENDPOINT {endpoint!r}: give a port of the loopback interface, such as {HOST}:8443; whoever reaches a "
            "SuperLink can start programs on it, so that a client on another machine comes through a forwarded port "
            "(ssh -R)"
        )
    return int(port)


class CheckNetwork(Loopback):
    """A SuperLink at a port, and the folder of the client that is to connect there; the client is not started."""

    def __init__(self, agreement: Agreement, folder: Path, port: int) -> None:
        super().__init__(agreement, folder, "fairwave device check")
        self._at = port

    def _free_port(self) -> int:
        return self._at

    def _start_devices(self) -> None:
        pass

    def _write_app(self, place: Path) -> None:
        keys = place / "known_keys"
        write_app(place / "app", self._agreement, self._folder, keys, self._command, server="conformance_app")

    def _prepare_device(self, device: int) -> None:
        write_device_folder(
            self._folder / NODE,
            device,
            f"{HOST}:{self.port}",
            (self.secrets / "ca.crt").read_bytes(),
            self._agreement,
            self.secrets / "known_keys" / f"{device}.pub",
        )
        # A check must not be charged to the account of anybody's records.
        own = {"data": self._agreement.order.scenario.data.source, "account": None}
        write_device_file(self._folder / NODE, read_device_file(self._folder / NODE).model_copy(update=own))


def check_client(
    agreement: Agreement,
    folder: Path,
    port: int,
    on_ready: Callable[[Path], None],
    on_check: Callable[[Check], None],
) -> bool:
    """Whether a client that connects keeps to every rule; `on_ready` is called with its folder."""
    assert agreement.order.scenario.cell.num_devices == DEVICE + 1
    with ended_by_sigterm(), CheckNetwork(agreement, folder, port) as network:
        on_ready(folder / NODE)
        log, kept = LogReader(folder / LOG), True
        network.submit()
        while True:
            for line in log.news():
                if line["event"] == "failed":
                    raise FederationError(str(line["why"]))
                if line["event"] == "finished":
                    return kept
                check = _check_in(line)
                kept = kept and not check.broken
                on_check(check)
            if network.superlink is None or network.superlink.ended() is not None:
                raise FederationError(f"the SuperLink has ended; see {network.logs}")
            time.sleep(_LOOK_EVERY_S)


def _check_in(line: dict[str, Any]) -> Check:
    return Check(str(line["rule"]), str(line["broken"]))
