"""The README and docs/plan.md show what their commands print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = "fairwave plan --devices examples/fleet.csv"
PAGES = {"README.md": 2, "docs/plan.md": 5}
"""Pages that show rows of the command's tables, and how many."""


@pytest.fixture(scope="module")
def printed() -> list[str]:
    arguments = [sys.executable, "-m", *COMMAND.split()]
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT, env=environment, encoding="utf-8"
    )
    return [words(line) for line in done.stdout.splitlines()]


def words(line: str) -> str:
    return " ".join(line.split())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_rows_that_a_page_shows_are_printed(page, printed):
    text = (ROOT / page).read_text("utf-8")
    shown = [words(line) for line in re.findall(r"^[│┃].*$", text, flags=re.MULTILINE)]
    assert COMMAND in text and sum(line.startswith("│") for line in shown) == PAGES[page]
    assert [line for line in shown if line not in printed] == []
