"""Lists in the documentation and in help texts are those of the registries."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairwave.extensions import RULES, SCHEMES

ROOT = Path(__file__).parents[2]


def test_tables_of_the_documentation_are_up_to_date():
    command = [sys.executable, str(ROOT / "docs" / "lists.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_table_that_lacks_a_row_is_noticed():
    spec = importlib.util.spec_from_file_location("lists", ROOT / "docs" / "lists.py")
    assert spec is not None and spec.loader is not None
    lists = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lists)
    text = (ROOT / "docs" / "schemes.md").read_text("utf-8")
    shorter = "\n".join(line for line in text.splitlines() if not line.startswith("| `fedl`")) + "\n"
    assert lists.written(text) == text != shorter and lists.written(shorter) == text


def test_the_page_on_plans_describes_every_policy_as_the_registry_does():
    text = (ROOT / "docs" / "plan.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \| [\d.]+ \|", text, flags=re.MULTILINE))
    assert rows == {name: RULES[name].summary for name in RULES.builtin_names()}


@pytest.mark.parametrize(
    ("command", "names"), [("run", SCHEMES.builtin_names()), ("plan", RULES.builtin_names())], ids=["run", "plan"]
)
def test_help_names_everything(command, names):
    done = subprocess.run(
        [sys.executable, "-m", "fairwave", command, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    shown = " ".join(done.stdout.split())
    assert ", ".join(names) in shown


def test_every_extension_point_has_a_row_in_contributing():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    parts = re.findall(r"^\| ([a-z ]+) \| ", text, flags=re.MULTILINE)
    expected = (
        "scheme, rule, behaviour, defence, fading law, data set, model, figure, accountant, command, privacy mode"
    )
    for part in expected.split(", "):
        assert part in parts
