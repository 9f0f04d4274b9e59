"""Lists of what can be named, at the width of the terminal."""

from __future__ import annotations

import re

import pytest

from fairwave.cli.glossed_names import tell_beside
from fairwave.extensions import BEHAVIOURS, SCHEMES
from tests.end_to_end.command_line import fairwave

LISTS = [
    *(("scenario", name) for name in ("list", "schemes", "policies", "behaviours", "defences")),
    *(("scenario", name) for name in ("aggregators", "models", "features")),
    ("data", "list"),
]


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 60])
def test_a_list_fits_and_names_stand_out(words, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    said = fairwave(capsys, monkeypatch, *words)
    lines = said.out.splitlines()
    assert said.code == 0 and max(map(len, lines)) <= columns
    begun = {re.match(r"\S+ +", line).end() for line in lines if not line.startswith(" ")}
    went_on = {len(line) - len(line.lstrip()) for line in lines if line.startswith(" ")}
    assert len(begun) == 1 and went_on <= begun  # one column of names, one of meanings


@pytest.mark.parametrize(("words", "registry"), [("schemes", SCHEMES), ("behaviours", BEHAVIOURS)])
def test_nothing_of_a_meaning_is_lost(words, registry, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = " ".join(fairwave(capsys, monkeypatch, "scenario", words).out.split())
    assert all(f"{member.name} {member.summary}" in told for member in registry.values())


def test_a_name_that_takes_the_room_keeps_its_distance(capsys):
    tell_beside("much_longer", "Says so.", 5)
    assert capsys.readouterr().out == "much_longer Says so.\n"
