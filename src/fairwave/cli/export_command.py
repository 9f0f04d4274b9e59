"""`fairwave export`: a run's results for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.arguments import RunFolder
from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError


def export(
    run: RunFolder,
    to: Annotated[
        Path, typer.Option(help="File to write: .nc (xarray), .parquet or .csv (a row per device and round).")
    ],
    plugins: Plugins = None,
) -> None:
    """Write a run's results, every value of every scheme, seed, round and device.

    Example:  fairwave export runs/paper --to results.nc
    """
    from fairwave.plugins import load_plugins
    from fairwave.report.run_export import ENDINGS, export_results
    from fairwave.runs.session import results
    from fairwave.runs.store import RunStore

    if to.suffix.lower() not in ENDINGS:
        raise ArgumentError(f"--to {to}: unknown ending '{to.suffix}'; choose from {', '.join(ENDINGS)}")
    load_plugins(plugins or ())
    store = RunStore(run)
    export_results(results(store), to)
    store.close()
    typer.echo(f"wrote {to}", err=True)
