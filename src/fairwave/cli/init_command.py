"""`fairwave init`: a folder to begin with."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.shipped_files import shipped_files
from fairwave.errors import OutputError

FILES = ("scenario.toml", "fleet.csv", "plugin.py", "notebook.ipynb")
"""What is written, out of the folder `starter` of the package."""


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            show_default=False, metavar="[FOLDER]", help="Write into this folder. Default: the current folder."
        ),
    ] = Path(),
    docs: Annotated[bool, typer.Option("--docs", help="Also write the pages of the documentation to docs/.")] = False,
) -> None:
    """Write a scenario, a fleet, a plugin, a notebook and the examples to start from.

    The files work without changes and include the examples that other help texts name, such as
    examples/sweep.toml. The command replaces no file that exists already.

    Example:  fairwave init mine
    """
    contents = _contents(docs)
    there = [name for name in contents if (folder / name).exists()]
    if there:
        raise OutputError(f"{folder / there[0]}: is there already; choose another folder, or move the file away")
    try:
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    scenario = folder / "scenario.toml"
    folders = sorted({f"{Path(name).parent}/" for name in contents if "/" in name}, reverse=True)
    typer.echo(f"written to {folder}: {', '.join([*FILES, *folders])}")
    typer.echo(f"next:  fairwave plan {scenario} --policies proposed,max_power,half_power")
    typer.echo(f"       fairwave run {scenario} --schemes proposed,max_power,half_power --out {folder / 'run'}")


def _contents(docs: bool) -> dict[str, bytes]:
    """What is written, by its path in the folder."""
    starter = importlib.resources.files("fairwave.cli") / "starter"
    contents = {name: (starter / name).read_bytes() for name in FILES}
    files = shipped_files("examples", (".py", ".csv", ".toml"))
    files += shipped_files("docs", (".md",)) if docs else []
    return contents | {f"{path.parent.name}/{path.name}": path.read_bytes() for path in files}
