"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairwave.extensions import COMPARED, SCHEMES, listed
from fairwave.registry import Registry

RunFolder = Annotated[Path, typer.Argument(show_default=False, metavar="RUN", help="This is the folder of a run.")]
Schemes = Annotated[
    str,
    typer.Option(
        help=f"Compare these schemes, separated by commas, or 'all'. Schemes: {listed(SCHEMES)}, and those of plugins.",
        autocompletion=lambda incomplete: names_after_commas(SCHEMES, incomplete),
    ),
]
DEFAULT_COMPARED = ",".join(COMPARED)
"""What is compared where nothing is named, as it would be typed."""
Seeds = Annotated[
    str,
    typer.Option(
        show_default=False, help="Repeat with these seeds, as in 0..4 or 0,3,7. Default: the scenario's seed."
    ),
]


def warn(sentence: str) -> None:
    """Say on standard error what a command may surprise with."""
    typer.echo(f"warning: {sentence}", err=True)


def names_after_commas(registry: Registry[Any], incomplete: str) -> list[str]:
    """What a shell may complete the last of several names to."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in registry.names() if name.startswith(last)]


def names_in(text: str, known: list[str]) -> tuple[str, ...]:
    """Names separated by commas; 'all' stands for every known one."""
    return tuple(known) if text.strip() == "all" else tuple(name.strip() for name in text.split(",") if name.strip())
