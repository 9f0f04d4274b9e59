"""`fairwave device`: one device of a federation, on its own machine."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.fleet_command import need_flower
from fairwave.errors import ArgumentError, FederationError

app = typer.Typer(
    help="Run one device of a federation, ask whether it is connected, or test a client.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FRESH_S = 60.0
"""How old a device's word that it is connected may be: it renews it with every heartbeat, at least every 30 s."""

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="This is the folder of the device, which holds device.toml.")
]


@app.command()
def run(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="These are the folders of devices. Each of them holds device.toml."),
    ],
) -> None:
    """Take part in a federation until the program is stopped: connect, train when asked, and reconnect.

    DIR is a folder 'node-N' that 'fairwave federate init' has written. The program keeps the data, the account, the
    keys and the compiled programs of its devices. If the network or the access point fails, it tries again until it is
    connected. Ctrl-C or SIGTERM ends it, and the access point is notified. Several folders are several devices in one
    process.

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
    """Say whether a device on this machine is connected. The exit code is 0 if it is, and 7 if not.

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


@app.command()
def check(
    endpoint: Annotated[
        str,
        typer.Argument(
            metavar="ENDPOINT", help="The client finds the access point at this address, such as 127.0.0.1:8443."
        ),
    ],
    folder: Annotated[Path, typer.Option(help="Write the client's key and settings into this new folder.")] = Path(
        "check"
    ),
    source: Annotated[str, typer.Option(help="Check with the scenario of this preset or TOML file.")] = "small",
    samples: Annotated[int, typer.Option(min=1, help="The client holds this many samples.")] = 500,
    wait: Annotated[
        float, typer.Option(help="Wait this many seconds for the client, and for each of its answers.")
    ] = 120.0,
) -> None:
    """Check whether a client, written in any language, follows the protocol of docs/wire.md.

    The command starts an access point at ENDPOINT, on this machine. It writes DIR/node-0 with a key, the authority's
    certificate, device.toml and the agreement. Start the client with these. Every rule is then tested and reported.
    The exit code is 0 if the client follows all rules, and 7 if not. To check fairwave's own client, start it with
    'fairwave device run check/node-0'.

    Example:  fairwave device check 127.0.0.1:8443
    """
    need_flower()
    from fairwave.cli.federate_command import settings_of
    from fairwave.federate.agreement import Agreement
    from fairwave.federate.conformance import Check
    from fairwave.federate.conformance_network import check_client, port_of
    from fairwave.runs.order import Order
    from fairwave.scenario.loading import load_scenario

    port = port_of(endpoint)
    if folder.exists():
        raise ArgumentError(f"--folder {folder}: is there already; give a new one")
    own = ['data.partition={law="own"}', f"data.samples_per_device={samples}", "cell.num_devices=1"]
    settings = settings_of(deadline_s=wait, wait_s=wait, energy="model")
    order = Order.checked(load_scenario(source, own), ("proposed",), (0,), 2)

    def tell(found: Check) -> None:
        typer.echo(
            f"{'broken' if found.broken else 'kept':>6}  {found.rule}{': ' if found.broken else ''}{found.broken}"
        )

    def ready(node: Path) -> None:
        typer.echo(f"waiting for a client at {endpoint}, with the key and settings of {node}", err=True)

    if not check_client(Agreement(order, settings), folder, port, ready, tell):
        raise FederationError(f"{endpoint}: the client does not keep to the protocol; see docs/wire.md")
