"""The access point as a Flower ServerApp. Its run-config names the run folder (`out`) and a folder of public keys."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fairwave.federate.agreement import read_agreement
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.grid_pace import look_again_soon
from fairwave.federate.log_lines import in_words
from fairwave.federate.strategy import UtilityFair


def server_app(folder: Path) -> ServerApp:
    """The app of a folder that holds an agreement."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        look_again_soon()
        config = context.run_config
        out, known_keys = Path(str(config["out"])), str(config.get("known_keys", ""))
        strategy = UtilityFair(
            read_agreement(folder),
            out,
            str(config.get("command", "")),
            KnownKeys(Path(known_keys)) if known_keys else None,
            _log,
        )
        strategy.start(grid)

    return app


def _log(line: dict[str, Any]) -> None:
    """To Flower's log, which `flwr run --stream` shows."""
    text = in_words(line)
    if text:
        logging.getLogger("flwr").info(text)
