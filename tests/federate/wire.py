"""A wire between devices and the SuperLink that can be cut: every connection passes through this process."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Wire:
    """Forwards connections on the loopback interface, or closes them."""

    def __init__(self, to: int) -> None:
        """`to` is the SuperLink's port."""
        self._to, self._open = to, set[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.down, self.handshakes_to_cut, self.cut = False, 0, 0

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.drop()

    def drop(self) -> None:
        """Close every connection that is open now."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.down:
                near.close()
                continue
            if self.handshakes_to_cut > 0:
                self.handshakes_to_cut -= 1
                self.cut += 1
                near.settimeout(5.0)
                with contextlib.suppress(OSError):
                    near.recv(64)  # the beginning of a TLS handshake
                near.close()
                continue
            with contextlib.suppress(OSError):
                far = socket.create_connection(("127.0.0.1", self._to), timeout=5.0)
                far.settimeout(None)
                self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(source, sink), daemon=True).start()
                continue
            near.close()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
