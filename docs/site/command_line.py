"""Every command with its arguments and options, read from the typer application."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import typer.main

from fairwave.cli.main import app

HELP = ("help",)


def commands() -> list[tuple[str, click.Command, click.Context]]:
    """Every command under its whole name, groups before their members."""
    return list(_commands(typer.main.get_command(app), "fairwave", None))


def _commands(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=name.rsplit(maxsplit=1)[-1], parent=parent)
    yield name, command, context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            member = command.get_command(context, each)
            if member is not None and not member.hidden:
                yield from _commands(member, f"{name} {each}", context)


def option_names(command: click.Command) -> set[str]:
    """Every spelling of every option of a command."""
    own = {name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}
    return own | {"--help", "-h"}


def page() -> str:
    """The page of the reference."""
    lines = [
        "# Command line",
        "",
        "This page lists every command with its arguments and options. It is generated from the program, so it says",
        "the same as `fairwave COMMAND --help`.",
    ]
    for name, command, context in commands():
        lines += ["", f"{'##' if ' ' not in name or name.count(' ') == 1 else '###'} `{name}`", "", *_told(command)]
        lines += ["", "```text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()), "```"]
        lines += _rows("Argument", [each for each in command.params if isinstance(each, click.Argument)], context)
        lines += _rows("Option", [each for each in command.params if isinstance(each, click.Option)], context)
    return "\n".join(lines) + "\n"


def _told(command: click.Command) -> list[str]:
    """The command's help; lines that can be typed become code."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        told, typed, rest = paragraph.partition("  fairwave ")
        plain = _text(" ".join(told.split()))
        if paragraph.startswith("\b") or paragraph.lstrip().startswith("fairwave "):
            lines += _code(paragraph.removeprefix("\b\n"))
        elif typed:
            lines += [plain, "", *_code("fairwave " + rest)]
        else:
            lines += [plain, ""]
    return "\n".join(lines).replace("\n```\n\n```\n", "\n").splitlines()


def _code(text: str) -> list[str]:
    return ["```", *(line.strip() for line in text.splitlines()), "```", ""]


def _rows(head: str, params: list[click.Argument] | list[click.Option], context: click.Context) -> list[str]:
    shown = [each for each in params if not getattr(each, "hidden", False) and each.name not in HELP]
    if not shown:
        return []
    rows = ["", f"| {head} | Meaning |", "| --- | --- |"]
    return rows + [_row(each, context) for each in shown]


def _row(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    name, meaning = record if record is not None else (parameter.human_readable_name, "")
    return f"| `{_cell(name)}` | {_cell(_text(meaning))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(meaning: str) -> str:
    """Help as Markdown: what looks like markup is none."""
    for sign in "<*_[":
        meaning = meaning.replace(sign, f"\\{sign}")
    return meaning
