"""The access point as a Flower ServerApp. Its run-config names the run folder (`out`) and a `roster` of public keys."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fairwave.federate.agreement import read_brief
from fairwave.federate.device_keys import Roster
from fairwave.federate.log_lines import in_words
from fairwave.federate.strategy import UtilityFair


def server_app(folder: Path) -> ServerApp:
    """The app of a folder that holds a brief."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        config = context.run_config
        out, roster = Path(str(config["out"])), str(config.get("roster", ""))
        strategy = UtilityFair(
            read_brief(folder),
            out,
            str(config.get("command", "")),
            Roster(Path(roster)) if roster else None,
            _log,
        )
        strategy.start(grid)

    return app


def _log(line: dict[str, Any]) -> None:
    """To Flower's log, which `flwr run --stream` shows."""
    text = in_words(line)
    if text:
        logging.getLogger("flwr").info(text)
