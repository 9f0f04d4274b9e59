"""The access point's folder of a deployment, as its operator's commands use it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairwave.errors import ArgumentError, OutputError
from fairwave.federate.app_folder import PACKAGE
from fairwave.federate.flower_command import connection_settings, flwr
from fairwave.federate.processes import surroundings
from fairwave.private_files import replace_file

ABOUT, POINT = "kit.toml", "access-point"
CONNECTION = "federation"
_REGISTERED = "registered.json"


@dataclasses.dataclass(frozen=True)
class PointFolder:
    """A folder that `fairwave federate init` has written for the access point."""

    given: Path
    """As the user named it: this folder, or the kit that holds it."""
    folder: Path
    host: str
    port: int

    @classmethod
    def of(cls, given: Path) -> PointFolder:
        """The access point's folder, given itself or by the kit's."""
        folder = (given / POINT if (given / POINT / ABOUT).exists() else given).resolve()
        try:
            about = tomllib.loads((folder / ABOUT).read_text("utf-8"))
            point = cls(given, folder, str(about["host"]), int(about["port"]))
        except OSError:
            raise ArgumentError(
                f"{given}: has no {ABOUT}; give the folder access-point, or the one that 'fairwave federate init' made"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise ArgumentError(f"{folder / ABOUT}: does not say host and port; restore the original") from None
        strange = [sign for sign in str(folder) if sign in '"\\' or not sign.isprintable()]
        if strange:  # Flower takes paths inside quoted settings, which know no escapes
            raise ArgumentError(f"{folder}: {strange[0]!r} in a path cannot be passed on to Flower; move the folder")
        return point

    @property
    def superlink(self) -> str:
        """The SuperLink's address, on the loopback interface."""
        return f"127.0.0.1:{self.port + 1}"

    @property
    def known_keys(self) -> Path:
        """The public keys of devices that are admitted."""
        return self.folder / "known_keys"

    @property
    def revoked(self) -> Path:
        """The public keys that were taken out of them."""
        return self.folder / "revoked"

    @property
    def app(self) -> Path:
        """The Flower app."""
        return self.folder / "app"

    @property
    def agreement(self) -> Path:
        """The scenario and the settings of the federation."""
        return self.app / PACKAGE

    @property
    def run(self) -> Path:
        """The run of the federation."""
        return self.folder / "run"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Flower's commands for this federation."""
        return surroundings(self.folder / "flower")

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """A command of Flower to this access point's SuperLink; its answer."""
        home = self.folder / "flower"
        home.mkdir(mode=0o700, exist_ok=True)
        settings = connection_settings(CONNECTION, self.superlink, self.folder / "ca.crt")
        replace_file(home / "config.toml", settings.encode())
        see = "is the SuperLink running (./start.sh)?"
        return flwr(self.environment, see, *arguments, CONNECTION, "--format", "json")

    def registered(self) -> dict[str, str]:
        """The SuperLink's number of the node of every key that it was told, by the key's fingerprint."""
        path = self.folder / _REGISTERED
        try:
            return {str(name): str(node) for name, node in json.loads(path.read_bytes()).items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError):
            raise OutputError(f"{path}: damaged; remove it, then ./register.sh") from None

    def note_registered(self, nodes: Mapping[str, str]) -> None:
        """Write that down."""
        replace_file(self.folder / _REGISTERED, json.dumps(dict(nodes), indent=1).encode())


def fingerprint(public: Path) -> str:
    """A name for the key in a file, whatever the file is called and the key is commented with."""
    return hashlib.sha256(b" ".join(public.read_bytes().split()[:2])).hexdigest()
