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

    Values that the run's privacy mode does not cover are marked: by the attribute 'private' of a NetCDF variable, by
    the metadata of a Parquet column, and for CSV, which has no place for it, by a note.

    Example:  fairwave export runs/paper --to results.nc
    """
    from fairwave.plugins import load_plugins
    from fairwave.privacy.modes.mode import mode_of
    from fairwave.report.run_export import ENDINGS, export_results, marked_columns, result_rows, with_marks
    from fairwave.runs.session import results
    from fairwave.runs.store import RunStore

    if to.suffix.lower() not in ENDINGS:
        raise ArgumentError(f"--to {to}: unknown ending '{to.suffix}'; choose from {', '.join(ENDINGS)}")
    load_plugins(plugins or ())
    store = RunStore(run)
    mode = mode_of(store.order.scenario.privacy)
    marked = with_marks(results(store), mode.not_private())
    store.close()
    export_results(marked, to)
    typer.echo(f"wrote {to}", err=True)
    if to.suffix.lower() == ".csv":
        written = set(result_rows(marked.isel(round=[0])).column_names)
        exact = ", ".join(name for name in marked_columns(marked) if name in written)
        typer.echo(f"not private in mode '{mode.name}': {exact}", err=True)
