"""An access point that asks one client whether it keeps to the protocol, as a Flower ServerApp."""

from __future__ import annotations

import time
from pathlib import Path

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from fairwave.errors import FederationError
from fairwave.federate.agreement import read_agreement
from fairwave.federate.conformance import Conformance
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.messaging import Exchanges
from fairwave.federate.server_run import log_line

DEVICE = 0
_LOOK_EVERY_S = 0.5


def conformance_app(folder: Path) -> ServerApp:
    """The app of a folder that holds an agreement; what it finds goes into the log of its run."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        out, keys = Path(str(context.run_config["out"])), KnownKeys(Path(str(context.run_config["known_keys"])))
        agreement, exchanges = read_agreement(folder), Exchanges(grid)
        try:
            node = _first_node(grid, agreement.settings.wait_s)
        except FederationError as error:
            log_line(out, "failed", why=str(error))
            raise

        def ask(kind: str, content: RecordDict) -> RecordDict | None:
            reply = exchanges.exchange({node: content}, kind, "check", agreement.settings.deadline_s).get(node)
            return reply.content if isinstance(reply, Message) and reply.has_content() else None

        for check in Conformance(agreement, DEVICE, keys, ask).run():
            log_line(out, "check", rule=check.rule, broken=check.broken)
        log_line(out, "finished")

    return app


def _first_node(grid: Grid, wait_s: float) -> int:
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        for node in grid.get_node_ids():
            return int(node)
        time.sleep(_LOOK_EVERY_S)
    raise FederationError(f"no client has connected in {wait_s:g} s; start it, with the folder that was written for it")
