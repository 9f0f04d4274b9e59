"""`fairwave federate start`, `add`, `revoke` and the other commands of an access point's operator."""

from __future__ import annotations

import enum
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairwave.cli.run_command import Resumable, tell_results, this_command
from fairwave.errors import ArgumentError

if TYPE_CHECKING:
    from fairwave.federate.point_folder import PointFolder


class Form(enum.StrEnum):
    """How a status is given."""

    TEXT = "text"
    JSON = "json"


Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="This is the access point's folder, or the folder that 'init' has written."),
]
Device = Annotated[
    int,
    typer.Argument(
        metavar="DEVICE", min=0, help="This is the device's number in the scenario. Devices are numbered from 0."
    ),
]
StatusFolder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="This is the access point's folder, the folder that 'init' has written, or the run's folder.",
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Do not contact the SuperLink now. It is informed later.")]


def start(folder: Folder) -> None:
    """Start or resume the federation of a deployment, and show what happens until it is done.

    The SuperLink has to be running. Ctrl-C stops the run. Every stored round is safe, and the same command resumes.

    Example:  fairwave federate start access-point
    """
    point = _point(folder)
    from fairwave.federate.federation_start import start_federation

    command = this_command()
    with Resumable(command):
        start_federation(point, command, say_line)
    tell_results(point.run, worked=True)


def register(folder: Folder) -> None:
    """Register the devices' keys with the SuperLink. This may be repeated, and never restores a revoked key."""
    point = _point(folder)
    from fairwave.federate import fleet_members

    fleet_members.register(point, typer.echo)


def add(
    folder: Folder,
    device: Device,
    out: Annotated[
        Path | None, typer.Option(show_default=False, help="Write node-DEVICE into this folder. Default: FOLDER.")
    ] = None,
    offline: Offline = False,
) -> None:
    """Write a new folder with a new key for a device, while the federation runs.

    This is for a device whose folder was lost (revoke its key first) or was never written. The scenario's number of
    devices does not change.

    Example:  fairwave federate add deployment 3
    """
    point = _point(folder)
    from fairwave.federate import fleet_members

    made = fleet_members.add(point, device, out or folder, typer.echo, offline=offline)
    typer.echo(f"written: {made}   (it holds a private key: move it to the device over a channel you trust)")


def revoke(
    folder: Folder,
    device: Device,
    old: Annotated[bool, typer.Option("--old", help="Revoke all keys but the newest, which ends a rotation.")] = False,
    offline: Offline = False,
) -> None:
    """Remove a device's keys from the federation. The access point refuses them from its next round on.

    Example:  fairwave federate revoke access-point 3
    """
    point = _point(folder)
    from fairwave.federate import fleet_members

    fleet_members.revoke(point, device, typer.echo, old_only=old, offline=offline)


def rotate(
    folder: Folder,
    device: Device,
    out: Annotated[
        Path | None,
        typer.Option(show_default=False, help="Write the private key into this file. Default: FOLDER/node-DEVICE.key."),
    ] = None,
    offline: Offline = False,
) -> None:
    """Give a device a second key. Both keys are valid until the old one is revoked.

    Replace node.key on the device by the new key and restart the device. Use 'fairwave federate revoke
    --old' after that.

    Example:  fairwave federate rotate access-point 3
    """
    point = _point(folder)
    from fairwave.federate import fleet_members

    private = out or folder / f"node-{device}.key"
    fleet_members.rotate(point, device, private, typer.echo, offline=offline)
    typer.echo(
        f"written: {private}   (move it to the device as node.key, restart the device, then: fairwave federate revoke "
        f"{folder} {device} --old)"
    )


def renew(
    folder: Folder,
    authority: Annotated[
        Path | None,
        typer.Option(
            show_default=False,
            help="Sign with the authority's private key in this file. Default: authority/ca.key of the kit.",
        ),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=1825, help="The new certificate is valid for this many days.")] = 365,
) -> None:
    """Issue a new certificate for the access point, under the same names. Devices need no change.

    Example:  fairwave federate renew deployment
    """
    point = _point(folder)
    from fairwave.federate import fleet_members

    fleet_members.renew(point, authority or point.folder.parent / "authority" / "ca.key", days)
    typer.echo(
        f"written: {point.folder / 'server.crt'} and server.key, for {days} days   (next: restart the gate and the "
        "SuperLink with them; devices come back by themselves)"
    )


def status(
    folder: StatusFolder,
    form: Annotated[
        Form, typer.Option("--format", show_default=False, help="Print the status as text or as JSON. Default: text.")
    ] = Form.TEXT,
) -> None:
    """Show the state of a federation, device by device, from its log and its store, whether or not it runs.

    Steps and epsilon come from the ledger and include what an unfinished round may have released at worst. Epsilon is
    shown only if it is proved.

    Example:  fairwave federate status access-point
    """
    import json

    run = _run_of(folder)
    from fairwave.federate.fleet_status import fleet_status
    from fairwave.federate.status_table import as_document, as_table

    held = fleet_status(run)
    typer.echo(json.dumps(as_document(held), indent=1) if form is Form.JSON else as_table(held, time.time()))


def metrics(
    folder: StatusFolder,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Listen on this port of the loopback interface.")] = 9108,
) -> None:
    """Serve a federation's status to Prometheus, at http://127.0.0.1:PORT/metrics, until Ctrl-C.

    Example:  fairwave federate metrics access-point
    """
    run = _run_of(folder)
    from fairwave.federate.metrics_server import MetricsServer

    with MetricsServer(run, port) as server:
        typer.echo(f"serving http://127.0.0.1:{port}/metrics", err=True)
        server.serve_forever()


def say_line(line: dict[str, Any]) -> None:
    """Show a line of a federation's log, if it needs to be read."""
    from fairwave.federate.log_lines import in_words

    text = in_words(line)
    if text:
        typer.echo(text, err=True)


def need_flower() -> None:
    """Refuse to go on without Flower."""
    if importlib.util.find_spec("flwr") is None:
        raise ArgumentError("federate: Flower is not installed; install it with: pip install 'fairwave[flower]'")


def _point(folder: Path) -> PointFolder:
    need_flower()
    from fairwave.federate.point_folder import PointFolder

    return PointFolder.of(folder)


def _run_of(folder: Path) -> Path:
    """The run of an access point's folder, or a run's folder itself."""
    from fairwave.federate.point_folder import PointFolder
    from fairwave.runs.database import FILE

    need_flower()
    return folder if (folder / FILE).exists() else PointFolder.of(folder).run


COMMANDS: dict[str, Callable[..., None]] = {
    "start": start,
    "register": register,
    "add": add,
    "revoke": revoke,
    "rotate": rotate,
    "renew": renew,
    "status": status,
    "metrics": metrics,
}
"""What `fairwave federate` has for operators, by name."""
