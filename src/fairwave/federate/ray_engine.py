"""A federation on Flower's own simulation engine, which runs the devices as Ray actors."""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from fairwave.errors import ArgumentError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.processes import QUIET
from fairwave.federate.server_run import OnLogLine
from fairwave.federate.strategy import UtilityFair
from fairwave.runs.folder import DEVICES


def federate_on_ray(
    agreement: Agreement, folder: Path, command: str = "", on_line: OnLogLine = lambda line: None
) -> None:
    """Run an agreement into a folder, a device per actor and an actor per core."""
    if importlib.util.find_spec("ray") is None:
        raise ArgumentError("--engine ray: Ray is not installed; install it with: pip install 'fairwave[ray]'")
    os.environ.update({**QUIET, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"})
    logging.getLogger("flwr").setLevel(logging.ERROR)
    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        UtilityFair(agreement, folder, command, on_line=on_line).start(grid)

    run_simulation(
        server_app=server,
        client_app=app_of(lambda: agreement, folder.resolve() / DEVICES),
        num_supernodes=agreement.order.scenario.cell.num_devices,
        backend_config={
            "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
            "init_args": {"logging_level": "ERROR", "log_to_driver": False},
        },
    )
