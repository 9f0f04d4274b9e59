"""`fairwave init`: a folder to begin with."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import Annotated

import typer

from fairwave.errors import OutputError

FILES = ("scenario.toml", "fleet.csv", "plugin.py", "notebook.ipynb")
"""What is written, out of the folder `starter` of the package."""


def init(
    folder: Annotated[
        Path,
        typer.Argument(show_default=False, metavar="[FOLDER]", help="Where to write. Default: the current folder."),
    ] = Path(),
) -> None:
    """Write a scenario, a fleet, a plugin and a notebook to start from.

    All of it runs as it is, and nothing that is there already is replaced.

    Example:  fairwave init mine
    """
    starter = importlib.resources.files("fairwave.cli") / "starter"
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise OutputError(f"{folder / there[0]}: is there already; choose another folder, or move the file away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (folder / name).write_bytes((starter / name).read_bytes())
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    scenario = folder / "scenario.toml"
    typer.echo(f"written to {folder}: {', '.join(FILES)}")
    typer.echo(f"next:  fairwave plan {scenario} --policies proposed,max_power,half_power")
    typer.echo(f"       fairwave run {scenario} --schemes proposed,max_power,half_power --out {folder / 'run'}")
