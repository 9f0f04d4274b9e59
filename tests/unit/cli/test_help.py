"""Help at 80 columns: every summary whole, every argument explained, names and defaults as they are; completion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from fairwave.cli.main import app
from fairwave.extensions import RULES, SCHEMES
from tests.end_to_end.command_line import fairwave

AS_INSTALLED = "import sys; sys.argv[0] = 'fairwave'; from fairwave.cli.main import main; main()"


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*words, name))


EVERY = dict(commands(typer.main.get_command(app)))
GROUPS = [words for words, command in EVERY.items() if isinstance(command, click.Group)]


def help_of(words: tuple[str, ...], capsys, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    said = fairwave(capsys, monkeypatch, *words, "--help")
    assert said.code == 0
    return said.out


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_summaries_are_whole(words, capsys, monkeypatch):
    text = help_of(words, capsys, monkeypatch)
    listed = " ".join(text.split("Commands:")[1].split())
    for command in EVERY[words].commands.values():
        assert " ".join(command.help.split("\n\n")[0].split()) in listed
    assert "..." not in listed and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("words", [words for words in EVERY if words not in GROUPS], ids=" ".join)
def test_arguments_are_explained(words, capsys, monkeypatch):
    arguments = [each for each in EVERY[words].params if isinstance(each, click.Argument)]
    text = help_of(words, capsys, monkeypatch)
    assert text.startswith(f"Usage: fairwave {' '.join(words)}") and max(map(len, text.splitlines())) <= 80
    explained = text.split("Arguments:")[1].split("Options:")[0].split("\n  ") if arguments else []
    meanings = [line.split("  ", 1)[1:] for line in explained if line and not line.startswith(" ")]
    assert len([each for each in meanings if each and each[0].strip() not in ("", "[required]")]) == len(arguments)


def test_names_and_defaults_are_those_of_the_program(capsys, monkeypatch):
    run, plan = (" ".join(help_of((name,), capsys, monkeypatch).split()) for name in ("run", "plan"))
    assert all(name in run for name in SCHEMES.builtin_names()) and "[default: proposed,max_power]" in run
    assert all(name in plan for name in RULES.builtin_names()) and "[default: proposed,max_power]" in plan
    assert "[default: table]" in plan and "[default: 20]" in plan and "[default: paper]" in plan


def in_a_shell(tmp_path: Path, *arguments: str, **variables: str) -> str:
    environment = {**os.environ, "HOME": str(tmp_path), **variables}
    command = [sys.executable, "-c", AS_INSTALLED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("fairwave ru", {"run", "runs"}),
        ("fairwave run pap", {"paper", "paper-clean", "paper-literal"}),
        ("fairwave run small --schemes proposed,fedav", {"proposed,fedavg", "proposed,fedavgm"}),
        ("fairwave plan --policies max", {"max_power"}),
        ("fairwave run --dry", {"--dry-run"}),
    ],
)
def test_a_shell_completes(typed, completed, tmp_path: Path):
    asked = {"_FAIRWAVE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    assert set(in_a_shell(tmp_path, **asked).split()) == completed


def test_completion_can_be_installed(tmp_path: Path):
    said = in_a_shell(tmp_path, "--install-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "completion installed" in said
    script = (tmp_path / ".bash_completions" / "fairwave.sh").read_text()
    assert "_FAIRWAVE_COMPLETE=complete_bash" in script
    assert "fairwave.sh" in (tmp_path / ".bashrc").read_text()
