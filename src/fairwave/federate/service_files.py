"""Files that keep a deployment's programs running: units for systemd, and a compose file for containers."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from fairwave.federate.kit_texts import write_text

UNITS, COMPOSE = "systemd", "compose.yaml"
PLACES = {"place": "/var/lib/fairwave", "programs": "/opt/fairwave"}
"""Where the units expect the kit's folders and fairwave's virtual environment; each unit says so."""


def write_point_services(folder: Path, words: dict[str, str]) -> None:
    """The access point's units and compose file; `words` has its port."""
    (folder / UNITS).mkdir()
    for name in ("superlink", "gate", "federation"):
        write_text(folder / UNITS / f"fairwave-{name}.service", f"{name}.service", PLACES)
    write_text(folder / COMPOSE, "point.compose.yaml", {"version": _version(), "port": words["port"]})


def write_device_services(folder: Path, device: int) -> None:
    """A device's unit, which serves every device of a machine, and its compose file."""
    (folder / UNITS).mkdir()
    write_text(folder / UNITS / "fairwave-device@.service", "device.service", PLACES | {"device": str(device)})
    write_text(folder / COMPOSE, "device.compose.yaml", {"version": _version()})


def _version() -> str:
    return importlib.metadata.version("fairwave")
