"""What docs/stability.md promises, as far as a program can check it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fairwave
from fairwave.federate import client_state, device_account, protocol
from fairwave.report import privacy_statement
from fairwave.runs import migrations
from fairwave.scenario.parameters import Scenario

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "stability.md").read_text("utf-8")
OLD_SCENARIOS = sorted((ROOT / "tests" / "data").glob("scenario-*.toml"))


def test_format_numbers_are_those_of_the_code():
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (.*?) \|", PAGE, re.MULTILINE)
    stated = {name: (int(number), [int(n) for n in re.findall(r"\d+", also)]) for name, number, also in rows}
    assert stated == {
        "run file (`run.sqlite`)": (migrations.FORMAT, list(range(migrations.OLDEST, migrations.FORMAT))),
        "protocol of federations": (protocol.VERSION, []),
        "state of a device": (client_state.FORMAT, list(range(1, client_state.FORMAT))),
        "privacy account of a device": (device_account.FORMAT, []),
        "privacy statement": (privacy_statement.VERSION, []),
    }


def test_types_of_extensions_are_public():
    last = PAGE.split("## Extensions")[1]
    named = set(re.findall(r"`([A-Z]\w+)`", last))
    assert len(named) == 12 and named <= set(fairwave.__all__)


def _values(path: Path) -> dict[str, Any]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))
    return {f"{table}.{key}": value for table, held in tables.items() for key, value in held.items()}


def _agrees(stored: Any, loaded: Any) -> bool:
    """Whether a value of a file means what it did; tables may have got keys, with defaults."""
    if isinstance(stored, dict):
        return isinstance(loaded, dict) and all(_agrees(value, loaded.get(key)) for key, value in stored.items())
    if isinstance(stored, list):
        return len(stored) == len(loaded) and all(map(_agrees, stored, loaded))
    return bool(stored == loaded)


@pytest.mark.parametrize("path", OLD_SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_of_earlier_versions_load_with_the_same_values(path: Path):
    held = fairwave.load_scenario(path).model_dump(mode="json")
    stored = _values(path)
    assert len(stored) > 100
    changed = [
        name for name, value in stored.items() if not _agrees(value, held[name.split(".")[0]][name.split(".")[1]])
    ]
    assert changed == []


@pytest.mark.parametrize("path", OLD_SCENARIOS, ids=lambda path: path.stem)
def test_no_key_of_an_earlier_version_is_gone(path: Path):
    table, earlier = "", set()
    for line in path.read_text("utf-8").splitlines():
        heading, key = re.match(r"\[(\w+)\]", line), re.match(r"(?:# )?(\w+) (?:=|is unset)", line)
        if heading:
            table = heading[1]
        elif key:
            earlier.add(f"{table}.{key[1]}")
    now = {
        f"{table}.{key}"
        for table, field in Scenario.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    }
    assert len(earlier) > 130 and earlier <= now
