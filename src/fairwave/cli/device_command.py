"""`fairwave device`: one device of a federation, on its own machine."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.fleet_command import need_flower
from fairwave.errors import FederationError

app = typer.Typer(
    help="Be a device of a federation: 'run' takes part, 'health' says whether it is connected.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FRESH_S = 60.0
"""How old a device's word that it is connected may be: it renews it with every heartbeat, at least every 30 s."""

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the device, with device.toml.")]


@app.command()
def run(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of devices, with device.toml each.")],
) -> None:
    """Take part in a federation for as long as the program lives: connect, train when asked, reconnect.

    DIR is a folder 'node-N' as 'fairwave federate init' writes it. The program keeps data, account, keys and compiled
    programs of its devices; whatever happens to the network or the access point, it tries again until it is let in.
    Ctrl-C or SIGTERM ends it, with a goodbye. Several folders are several devices in one process.

    Example:  fairwave device run node-0
    """
    need_flower()
    from fairwave.federate.residents import Residents

    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    Residents(folders, lambda line: typer.echo(line, err=True)).run(end)


@app.command()
def health(folder: Folder) -> None:
    """Say whether a device that runs on this machine is connected; exit code 0 if it is, 7 if not.

    Example:  fairwave device health node-0
    """
    from fairwave.federate.device_file import DeviceFolder
    from fairwave.federate.resident_status import read_status

    status = read_status(DeviceFolder(folder).node().folder)
    if status is None:
        raise FederationError(f"{folder}: the device has never run; start it with: fairwave device run {folder}")
    age_s = time.time() - status.time
    if not status.connected:
        raise FederationError(f"{folder}: not connected, as of {age_s:.0f} s ago; its program says why")
    if age_s > _FRESH_S:
        raise FederationError(
            f"{folder}: nothing was heard of its program for {age_s:.0f} s; start it with: fairwave device run {folder}"
        )
    typer.echo(f"connected; last heartbeat {age_s:.0f} s ago")
