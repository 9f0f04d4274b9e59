"""The tables of docs/benchmarks.md, docs/audit.md and docs/search.md say what was measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("writer", ["benchmarks/document.py", "benchmarks/audit_mutants.py", "docs/search.py"])
def test_the_tables_are_those_of_the_files(writer):
    command = [sys.executable, str(ROOT / writer), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
