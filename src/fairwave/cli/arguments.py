"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwave.extensions import SCHEMES, listed

RunFolder = Annotated[Path, typer.Argument(show_default=False, metavar="RUN", help="Folder of a run.")]
Schemes = Annotated[
    str,
    typer.Option(
        show_default=False,
        help=f"Comma-separated, or 'all': {listed(SCHEMES)}, or a plugin's. Default: the first two.",
    ),
]
Seeds = Annotated[str, typer.Option(show_default=False, help="Such as 0..4 or 0,3,7. Default: the scenario's.")]


def warn(sentence: str) -> None:
    """Say on standard error what a command may surprise with."""
    typer.echo(f"warning: {sentence}", err=True)


def names_in(text: str, known: list[str]) -> tuple[str, ...]:
    """Names separated by commas; 'all' stands for every known one."""
    return tuple(known) if text.strip() == "all" else tuple(name.strip() for name in text.split(",") if name.strip())
