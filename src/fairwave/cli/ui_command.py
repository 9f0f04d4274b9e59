"""`fairwave ui`: a page that shows runs while they are written."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from fairwave.errors import ArgumentError

PORT = 8765


def ui(
    folder: Annotated[
        Path, typer.Argument(show_default=False, help="Look for runs in this folder, at any depth. Default: runs.")
    ] = Path("runs"),
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, show_default=False, help=f"Listen on this port. Default: {PORT}, or the next free port."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Listen on this address. Any address other than this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            show_default=False, envvar="FAIRWAVE_UI_TOKEN", help="Open the page with this token. Default: a new one."
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", show_default=False, help="Do not open a browser.")] = False,
) -> None:
    """Show the runs of a folder live in a browser, until Ctrl-C.

    The page only reads runs. They are started, resumed and removed in the terminal. It listens on this machine alone
    and opens with the token in its address.

    Example:  fairwave ui runs
    """
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise ArgumentError("ui: Starlette or uvicorn is not installed; install both with: pip install 'fairwave[ui]'")
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder}: is a file, not a folder; give the folder that your runs are in")
    from fairwave.ui.web_server import checked_token, listening, serve

    checked = checked_token(host, token)
    taken = listening(host, PORT if port is None else port, exactly=port is not None)
    serve(folder, taken, checked, host, lambda address: _say(address, open_it=not no_open))


def _say(address: str, *, open_it: bool) -> None:
    typer.echo(f"fairwave ui: {address}\nCtrl-C ends it.")
    if open_it and _has_screen():
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _has_screen() -> bool:
    """Whether a browser would open a window; without one it might take over the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
