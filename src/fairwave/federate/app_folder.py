"""The Flower app of a federation: a thin folder that names this library, with the agreement inside."""

from __future__ import annotations

from pathlib import Path

from fairwave.federate.agreement import Agreement, write_agreement

PACKAGE = "fairwave_app"

_PROJECT = """\
[project]
name = "fairwave-federation"
version = "1.0.0"
description = "Utility-fair federated learning: an access point and its devices."
license = "Apache-2.0"
dependencies = []                   # fairwave[flower] is installed beforehand, on every machine

[tool.flwr.app]
publisher = "fairwave"

[tool.flwr.app.components]
serverapp = "{package}.server_app:app"
clientapp = "{package}.client_app:app"

[tool.flwr.app.config]
out = {out}                         # where the access point keeps the run
known_keys = {known_keys}                   # its folder of the devices' public keys; empty: their word is taken
command = {command}                 # noted in the run
"""

_SERVER = '''\
"""The access point."""

from pathlib import Path

from fairwave.federate.{server} import {server}

app = {server}(Path(__file__).parent)
'''

_CLIENT = '''\
"""A device."""

from pathlib import Path

from fairwave.federate.client_app import client_app

app = client_app(Path(__file__).parent)
'''


def write_app(
    folder: Path,
    agreement: Agreement,
    out: Path,
    known_keys: Path | None,
    command: str,
    *,
    server: str = "server_app",
) -> None:
    """An app that `flwr run` takes; `server` is the module, and the function in it, that makes the ServerApp."""
    package = folder / PACKAGE
    package.mkdir(parents=True)
    quoted = {
        "out": _toml(str(out)),
        "known_keys": _toml("" if known_keys is None else str(known_keys)),
        "command": _toml(command),
    }
    (folder / "pyproject.toml").write_text(_PROJECT.format(package=PACKAGE, **quoted), "utf-8")
    (package / "__init__.py").write_text('"""A federation\'s two apps."""\n', "utf-8")
    (package / "server_app.py").write_text(_SERVER.format(server=server), "utf-8")
    (package / "client_app.py").write_text(_CLIENT, "utf-8")
    write_agreement(package, agreement)


def _toml(text: str) -> str:
    import tomlkit

    return tomlkit.item(text).as_string()
