"""Serving the page until Ctrl-C, which ends it at once."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette

from fairwave.errors import ArgumentError, OutputError
from fairwave.ui.gate import TOKEN, Door
from fairwave.ui.web_app import make_app

LEAST_TOKEN = 16
"""Characters of a token of one's own below which somebody might find it by trying."""
PATIENCE_S = 2.0
"""Seconds after Ctrl-C in which everything ends by itself, or is ended."""
PORTS = 20
"""Ports that are tried from the default one on, where nobody asked for a particular one."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_token(host: str, token: str | None) -> str:
    """The token: a new one if nobody gave one, which only this machine's own address allows."""
    if token is None:
        if not is_loopback(host):
            raise ArgumentError(
                f"--host {host}: other machines could reach the page; give a --token of {LEAST_TOKEN} characters or "
                "more as well, or leave the option out and use an SSH tunnel"
            )
        return secrets.token_urlsafe(24)
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ArgumentError(
            f"--token: has {len(token)} characters; give {LEAST_TOKEN} or more, ASCII and without spaces"
        )
    return token


def listening(host: str, port: int, *, exactly: bool) -> socket.socket:
    """A socket that listens on the port, or if that need not be, on one of the next."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    trouble: OSError | None = None
    for number in range(port, port + 1 if exactly or port == 0 else min(port + PORTS, 65536)):
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, number))
            taken.listen(128)
            return taken
        except OSError as error:
            taken.close()
            trouble = error
    why = trouble.strerror if trouble is not None else "no port"
    raise OutputError(f"--host {host} --port {port}: cannot be listened on ({why}); choose another")


def serve(folder: Path, door_socket: socket.socket, token: str, host: str, ready: Callable[[str], None]) -> None:
    """Serve the runs below a folder; `ready` is told the address once it answers."""
    port = door_socket.getsockname()[1]
    names = frozenset({host.lower(), socket.gethostname().lower()})
    app = make_app(folder, Door(token=token, port=port, names=names, loopback=is_loopback(host)))
    shown = host if ":" not in host else f"[{host}]"
    address = f"http://{shown}:{port}/?{urlencode({TOKEN: token})}"
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, date_header=False, timeout_graceful_shutdown=1
    )
    _Server(config, app, lambda: ready(address)).run(sockets=[door_socket])


class _Server(uvicorn.Server):
    """Ends streams as soon as it is told to end: they would go on until their tabs are closed."""

    def __init__(self, config: uvicorn.Config, app: Starlette, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app, self._ready = app, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say where, once it answers."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ctrl-C, or a request to end. A long table in the making is not waited for: nothing is lost with it."""
        super().handle_exit(sig, frame)
        give_up = threading.Timer(PATIENCE_S, os._exit, (128 + sig,))
        give_up.daemon = True
        give_up.start()
        self._app.state.server.ending.set()
