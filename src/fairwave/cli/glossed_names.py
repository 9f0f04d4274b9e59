"""Names with what each means beside it, in lines that fit the terminal."""

from __future__ import annotations

import shutil
import textwrap

import typer

WIDEST = 100
"""Longer lines are hard to read, however wide the terminal is."""


def tell_beside(name: str, meaning: str, room: int) -> None:
    """Print a name and its meaning, which begins after so many columns and stays to the right of them."""
    width = max(min(shutil.get_terminal_size().columns, WIDEST), room + 20)
    first, later = f"{name:{room - 1}} ", " " * room
    typer.echo(
        textwrap.fill(
            meaning,
            width,
            initial_indent=first,
            subsequent_indent=later,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
