"""A folder for a real deployment: one part per machine, each with what it needs and scripts that start it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.federate.agreement import Agreement
from fairwave.federate.app_folder import write_app
from fairwave.federate.credentials import AUTHORITY_DAYS, Authority, check_host
from fairwave.federate.device_folder import address, write_device_folder
from fairwave.federate.kit_texts import write_script, write_text
from fairwave.federate.point_folder import ABOUT, POINT
from fairwave.federate.service_files import write_point_services
from fairwave.signing import KEY, PUBLIC, make_signing_key

RATE_PER_DEVICE, BURST_PER_DEVICE, CONNECTIONS_PER_DEVICE = 30, 120, 4
"""What the gate lets one device ask: a round takes about 40 requests, and an idle device asks every few seconds."""
_SCRIPTS = {
    "start.sh": ("superlink.sh", "Starts the access point's SuperLink."),
    "gate.sh": ("gate.sh", "Opens the access point to its devices."),
    "register.sh": ("register.sh", "Tells the SuperLink which keys belong to devices; may be repeated."),
    "run.sh": ("run.sh", "Starts or resumes the federation."),
    "flwr.sh": ("flwr.sh", "Flower's own command, with this federation's settings."),
}


def write_kit(folder: Path, agreement: Agreement, hosts: Sequence[str], port: int, days: int) -> None:
    """Certificates, keys, the app and scripts; nothing is overwritten."""
    for host in hosts:
        check_host(host)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: is not empty; choose a new folder")
    count = agreement.order.scenario.cell.num_devices
    words = {"host": hosts[0], "count": str(count), **ports(port)}
    point, safe = folder / POINT, folder / "authority"
    for part in (point, safe, point / "known_keys"):
        part.mkdir(parents=True, mode=0o700)
    authority = Authority.make(AUTHORITY_DAYS)
    authority.write(point / "ca.crt", safe / "ca.key")
    authority.issue([*hosts, "localhost", "127.0.0.1"], days, point / "server.crt", point / "server.key")
    make_signing_key(point / KEY, point / PUBLIC)
    write_text(point / ABOUT, "kit.toml", words)
    write_app(point / "app", agreement, Path("run"), Path("known_keys"), "./run.sh")
    write_text(point / "gate.conf", "gate.conf", words | gate_limits(count))
    for name, (template, what) in _SCRIPTS.items():
        write_script(point / name, template, what, words)
    write_point_services(point, words)
    certificate = (point / "ca.crt").read_bytes()
    for device in range(count):
        public = point / "known_keys" / f"{device}.pub"
        write_device_folder(folder / f"node-{device}", device, address(hosts[0], port), certificate, agreement, public)
    write_text(folder / "README.md", "README.md", words)


def ports(port: int) -> dict[str, str]:
    """The gate's port, and the SuperLink's, which stays on the loopback interface."""
    return {"port": str(port), "inner": str(port + 1)}


def gate_limits(count: int) -> dict[str, str]:
    """What the gate allows one address: as much as all devices need, for they may be behind one router."""
    return {
        "rate": str(RATE_PER_DEVICE * max(2, count)),
        "burst": str(BURST_PER_DEVICE * max(2, count)),
        "connections": str(16 + CONNECTIONS_PER_DEVICE * count),
    }
