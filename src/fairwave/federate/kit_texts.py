"""Texts of the deployment kit: the files in `templates`, filled in."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from string import Template


def filled(name: str, words: Mapping[str, str]) -> str:
    """A template's text with its words; one that lacks a word, or has a stray dollar sign, is an error."""
    text = importlib.resources.files("fairwave.federate").joinpath("templates", name).read_text("utf-8")
    return Template(text).substitute(words)


def write_text(path: Path, name: str, words: Mapping[str, str]) -> None:
    """A file from a template."""
    path.write_text(filled(name, words), "utf-8")


def write_script(path: Path, name: str, what: str, words: Mapping[str, str]) -> None:
    """A shell script from a template, with what all scripts begin with; `what` says what it does."""
    path.write_text(filled("first.sh", {"what": what}) + filled(name, words), "utf-8")
    path.chmod(0o700)
