"""The history of a run: every time it was worked on, by which command, where, and with which versions."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import platform
from typing import Any

PACKAGES = ("fairwave", "jax", "jaxlib", "numpy")


@dataclasses.dataclass(frozen=True)
class Session:
    """One time that a run was worked on."""

    begun: str
    """Date and time in UTC, as ISO 8601 has it."""
    command: str
    machine: str
    """Processor, system, and what JAX computed on."""
    versions: str
    """Versions of Python and of the packages that results depend on, as JSON."""

    def described(self) -> dict[str, str]:
        """Names and values, as people read them."""
        versions: dict[str, Any] = json.loads(self.versions)
        named = {f"version of {name}": str(version) for name, version in versions.items()}
        return {"begun": self.begun, "command": self.command, "machine": self.machine, **named}


def session_now(command: str) -> Session:
    """A session that begins now, on this machine."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()}
    return Session(
        begun=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=command.encode("utf-8", "replace").decode(),
        machine=f"{platform.machine()} {platform.system()}, {_backend()}",
        versions=json.dumps(versions),
    )


def _backend() -> str:
    import jax

    return str(jax.devices()[0].device_kind) if jax.default_backend() != "cpu" else "CPU"
