"""A gate on loopback before a stand-in of the SuperLink that counts what reaches it, and the ways to attack it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fairwave.federate.agreement import Agreement
from fairwave.federate.kit import write_kit
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny

HONEST, STRANGER, OTHER_STRANGER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
"""Addresses of the loopback network from which requests come."""
POLL = "/v1/fleet/pull-messages"


class Upstream(ThreadingHTTPServer):
    """Answers every request, as the SuperLink would one of its own, and counts."""

    daemon_threads = True

    def __init__(self, port: int, point: Path) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.trust.load_cert_chain(point / "server.crt", point / "server.key")
        self.lock, self.connections, self.requests, self.bytes = threading.Lock(), 0, 0, 0
        self.paths: set[str] = set()

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        """Shake hands in the connection's own thread."""
        with self.lock:
            self.connections += 1
        request.settimeout(20.0)
        with contextlib.suppress(OSError), self.trust.wrap_socket(request, server_side=True) as own:
            super().finish_request(own, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet: otherwise each waits 40 ms for an acknowledgement
    server: Upstream

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        read = len(self.rfile.read(size))
        with self.server.lock:
            self.server.requests += 1
            self.server.bytes += read
            self.server.paths.add(self.path)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_PUT = do_POST

    def log_message(self, *rest: object) -> None:
        pass


class Gate:
    """A running gate and what is behind it."""

    def __init__(self, point: Path, port: int, upstream: Upstream) -> None:
        self.point, self.port, self.upstream = point, port, upstream
        self._trust = ssl.create_default_context(cafile=str(point / "ca.crt"))

    def connect(self, source: str, host: str = "127.0.0.1") -> ssl.SSLSocket:
        """A TLS connection from one of the loopback addresses."""
        bound = None if ":" in host else (source, 0)
        plain = socket.create_connection((host, self.port), timeout=10.0, source_address=bound)
        return self._trust.wrap_socket(plain, server_hostname="localhost")

    def ask(self, source: str, path: str = POLL, body: bytes = b"question", method: str = "POST") -> int:
        """The status of one request on a connection of its own."""
        with self.connect(source) as connection:
            return self.ask_on(connection, path, body, method)

    def ask_on(self, connection: ssl.SSLSocket, path: str = POLL, body: bytes = b"", method: str = "POST") -> int:
        """The status of one request; what is refused in the middle of its body has a status, too."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        with contextlib.suppress(OSError):
            connection.sendall(head.encode() + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()
        return answer.status

    def ask_in_chunks(self, source: str, size: int) -> int:
        """The status of a request whose body does not say how long it is."""
        with self.connect(source) as connection:
            connection.sendall(f"POST {POLL} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            piece = b"10000\r\n" + bytes(0x10000) + b"\r\n"
            with contextlib.suppress(OSError):
                for _ in range(size // 0x10000):
                    connection.sendall(piece)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status

    def stall(self, source: str, beginning: bytes, count: int) -> list[ssl.SSLSocket]:
        """Connections that begin a request and go no further."""
        held = []
        for _ in range(count):
            connection = self.connect(source)
            connection.sendall(beginning)
            held.append(connection)
        return held


def free_pair() -> int:
    """A port of the loopback interface that is free together with the next one."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port


@contextlib.contextmanager
def running_gate(folder: Path) -> Iterator[Gate]:
    """A kit's gate, started by its script, before a stand-in of the SuperLink."""
    port = free_pair()
    write_kit(folder, Agreement(tiny(), Settings()), ["localhost"], port, 30)
    point = folder / "access-point"
    upstream = Upstream(port + 1, point)
    serving = threading.Thread(target=upstream.serve_forever, daemon=True)
    serving.start()
    with (folder / "gate.log").open("wb") as log:
        nginx = subprocess.Popen([str(point / "gate.sh")], stdout=log, stderr=log)
    try:
        gate = Gate(point, port, upstream)
        end = time.monotonic() + 20.0
        while True:
            try:
                gate.connect(HONEST).close()
                break
            except OSError:
                if nginx.poll() is not None or time.monotonic() > end:
                    raise AssertionError((folder / "gate.log").read_text("utf-8", "replace")) from None
                time.sleep(0.1)
        yield gate
    finally:
        nginx.terminate()
        nginx.wait(20)
        upstream.shutdown()
        upstream.server_close()
        serving.join(5)
