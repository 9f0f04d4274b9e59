"""How help is written: summaries whole, in as many lines as they take, and arguments with their meaning."""

from __future__ import annotations

from typing import Any

import click
import typer.core
import typer.main


class WholeSummaries(typer.core.TyperGroup):
    """A group of commands whose summaries are not cut to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command with the first paragraph of its help."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, _summary(command)) for name, command in commands if command is not None and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ArgumentWithHelp(typer.core.TyperArgument):
    """An argument that is shown with its help, which click 8.5 sets to nothing after typer 0.20 has set it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._meaning = given.get("help") or ""

    def get_help_record(self, ctx: click.Context) -> Any:  # click and typer do not agree whether there may be none
        """The name, and what it means."""
        record = super().get_help_record(ctx)
        if record is None or self.help:
            return record
        name, rest = record
        return name, "  ".join(part for part in (self._meaning, rest) if part)


def mend_help() -> None:
    """Make typer write help as plain text, with the meaning of arguments."""
    typer.core.HAS_RICH = False  # with rich about, "[required]" would get a stray backslash
    vars(typer.main)["TyperArgument"] = ArgumentWithHelp


def _summary(command: click.Command) -> str:
    """The first paragraph of a command's help, on one line."""
    return " ".join((command.help or "").split("\n\n")[0].split())
