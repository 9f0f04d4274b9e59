"""The folder of one device in a deployment: its key, what it agrees to, and the settings of `fairwave device run`."""

from __future__ import annotations

from pathlib import Path

from fairwave.errors import OutputError
from fairwave.federate.agreement import Agreement, write_agreement
from fairwave.federate.credentials import make_device_key
from fairwave.federate.device_file import DeviceFile, write_device_file
from fairwave.federate.kit_texts import write_script
from fairwave.federate.service_files import write_device_services

AGREEMENT = "agreement"
KEY, AUTHORITY = "node.key", "ca.crt"
ACCOUNT = "~/.local/state/fairwave/account"
"""The privacy account that all federations of a user share, unless the device's owner names another."""


def write_device_folder(
    folder: Path, device: int, access_point: str, authority: bytes, agreement: Agreement, public: Path
) -> None:
    """A device's folder with a new key, whose public half goes to `public`; nothing is overwritten.

    The agreement is the owner's to read, and all that the device follows: no program comes from the access point.
    """
    if folder.exists():
        raise OutputError(f"{folder}: is there already; take it away, or choose another folder")
    (folder / AGREEMENT).mkdir(parents=True)
    folder.chmod(0o700)
    write_agreement(folder / AGREEMENT, agreement)
    (folder / AUTHORITY).write_bytes(authority)
    make_device_key(folder / KEY, public)
    write_device_file(folder, DeviceFile(device=device, access_point=access_point, account=ACCOUNT))
    write_script(folder / "start.sh", "device.sh", f"Starts device {device}.", {})
    write_device_services(folder, device)


def address(host: str, port: int) -> str:
    """A host and a port in one word; IPv6 addresses stand in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
