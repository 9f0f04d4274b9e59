"""A deployment on this machine: Flower's SuperLink, a process per device and the app, with TLS and node keys."""

from __future__ import annotations

import shutil
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairwave.errors import FederationError
from fairwave.federate.agreement import Agreement
from fairwave.federate.app_folder import PACKAGE, write_app
from fairwave.federate.control_link import register_keys
from fairwave.federate.credentials import Authority, make_device_key
from fairwave.federate.device_file import DeviceFile, write_device_file
from fairwave.federate.flower_command import connection_settings, flwr
from fairwave.federate.processes import Program, end_all, free_ports, surroundings, wait_until
from fairwave.federate.watchdog import Watchdog
from fairwave.runs.folder import DEVICES, LOGS

HOST = "127.0.0.1"
_START_S = 90.0
_DAYS = 30
_CONNECTION = "loopback"


class Loopback:
    """Started on entering a `with`, ended on leaving it, whatever happens; keys last as long."""

    def __init__(self, agreement: Agreement, folder: Path, command: str, *, per_process: int = 1) -> None:
        """`per_process` is how many devices live in one process: fleets have fewer processes than devices."""
        self._per_process = per_process
        self._agreement, self._folder, self._command = agreement, folder.resolve(), command
        self._count = agreement.order.scenario.cell.num_devices
        self.nodes: dict[int, Program] = {}

    def __enter__(self) -> Loopback:
        self.secrets = Path(tempfile.mkdtemp(prefix="fairwave-"))
        self._watchdog = Watchdog(self.secrets)
        self.logs = self._folder / LOGS
        self.logs.mkdir(parents=True, exist_ok=True)
        self.port = self._free_port()
        self.environment = surroundings(self.secrets / "flower")
        self.superlink: Program | None = None
        try:
            self._prepare()
            self.start_superlink()
            self._start_devices()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *rest: object) -> None:
        programs = [*self.nodes.values(), *([self.superlink] if self.superlink else [])]
        end_all(programs)
        shutil.rmtree(self.secrets, ignore_errors=True)
        self._watchdog.dismiss()

    def _free_port(self) -> int:
        return free_ports(1)[0]

    def submit(self) -> str:
        """Start the app; the number of Flower's run."""
        answer = self._flwr("run", str(self.secrets / "app"), _CONNECTION, "--format", "json")
        return str(answer["run-id"])

    def status(self, run: str) -> str:
        """The status of a run, in Flower's words, such as 'running' or 'finished:completed'."""
        answer = self._flwr("list", "--run-id", run, _CONNECTION, "--format", "json")
        return str(answer["runs"][0]["status"])

    def _start_devices(self) -> None:
        for device in range(0, self._count, self._per_process):
            self.start_node(device)

    def start_node(self, device: int) -> None:
        """Start a device and those that live in the same process, or start them again."""
        together = range(device, min(device + self._per_process, self._count))
        self.nodes[device] = self._started(
            [sys.executable, "-m", "fairwave", "device", "run", *(str(self.node_folder(k)) for k in together)],
            f"node-{device}.log",
        )

    def _started(self, command: Sequence[str], log: str) -> Program:
        program = Program(command, self.environment, self.logs / log)
        self._watchdog.watch(program.pid)
        return program

    @property
    def port_for_devices(self) -> int:
        """Where devices find the SuperLink."""
        return self.port

    def node_folder(self, device: int) -> Path:
        """Where a device finds its key and its settings."""
        return self.secrets / f"node-{device}"

    def _prepare(self) -> None:
        """Certificates, keys, Flower's settings and the app."""
        place = self.secrets
        authority = Authority.make(_DAYS + 1)
        authority.write(place / "ca.crt")
        authority.issue(["localhost", HOST], _DAYS, place / "server.crt", place / "server.key")
        (place / "known_keys").mkdir()
        for device in range(self._count):
            self._prepare_device(device)
        self._write_app(place)
        (place / "flower").mkdir(mode=0o700)
        (place / "flower" / "config.toml").write_text(
            connection_settings(_CONNECTION, f"{HOST}:{self.port}", place / "ca.crt"), "utf-8"
        )

    def _write_app(self, place: Path) -> None:
        write_app(place / "app", self._agreement, self._folder, place / "known_keys", self._command)

    def _prepare_device(self, device: int) -> None:
        folder = self.node_folder(device)
        folder.mkdir()
        make_device_key(folder / "node.key", self.secrets / "known_keys" / f"{device}.pub")
        write_device_file(
            folder,
            DeviceFile(
                device=device,
                access_point=f"{HOST}:{self.port_for_devices}",
                authority=str(self.secrets / "ca.crt"),
                home=str(self._folder / DEVICES),
                agreement=str(self.secrets / "app" / PACKAGE),
            ),
        )

    def start_superlink(self) -> None:
        """Start the SuperLink, or start it again: devices find it by themselves, once it knows their keys."""
        place = self.secrets
        self.superlink = self._started(
            [
                "flower-superlink",
                *("--host", HOST, "--port", str(self.port)),
                *("--ssl-ca-certfile", str(place / "ca.crt")),
                *("--ssl-certfile", str(place / "server.crt"), "--ssl-keyfile", str(place / "server.key")),
                "--enable-supernode-auth",
            ],
            "superlink.log",
        )
        if not wait_until(self._healthy, _START_S):
            raise FederationError(f"the SuperLink did not start; see {self.logs / 'superlink.log'}")
        keys = [place / "known_keys" / f"{device}.pub" for device in range(self._count)]
        register_keys(f"{HOST}:{self.port}", place / "ca.crt", keys)

    def _healthy(self) -> bool:
        trust = ssl.create_default_context(cafile=str(self.secrets / "ca.crt"))
        try:
            with urllib.request.urlopen(f"https://{HOST}:{self.port}/health", context=trust, timeout=5.0):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        return flwr(self.environment, f"see {self.logs}", *arguments)
