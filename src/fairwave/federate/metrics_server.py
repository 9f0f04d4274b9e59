"""An HTTP server on the loopback interface that shows a federation's status to Prometheus."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fairwave.errors import FairwaveError, OutputError
from fairwave.federate.fleet_status import fleet_status
from fairwave.federate.metrics_page import CONTENT_TYPE, metrics_page

HOST, PATH = "127.0.0.1", "/metrics"
_PATIENCE_S = 10.0


class MetricsServer(ThreadingHTTPServer):
    """Reads the run folder anew for every request; it can be started before the federation is."""

    daemon_threads = True

    def __init__(self, run: Path, port: int) -> None:
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise OutputError(f"--port {port}: cannot be used ({error.strerror}); choose another") from None
        self.run = run


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = _PATIENCE_S
    server_version, sys_version = "fairwave", ""

    def do_GET(self) -> None:
        """The page, or why there is none."""
        if self.path != PATH:
            self._answer(404, f"the metrics are at {PATH}\n", "text/plain")
            return
        try:
            self._answer(200, metrics_page(fleet_status(self.server.run)), CONTENT_TYPE)
        except (FairwaveError, OSError) as error:  # there may be no run yet; the next request may find one
            self._answer(503, f"{error}\n", "text/plain")

    def _answer(self, code: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *rest: object) -> None:
        """Requests every few seconds are not worth a line."""
