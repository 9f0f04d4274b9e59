"""Where compiled programs are kept, and where not."""

from __future__ import annotations

import os
from pathlib import Path

from fairwave.cli.program_cache import FOLDER, WORTH_KEEPING, keep_programs


def clean(monkeypatch, home: Path) -> None:
    for name in (FOLDER, WORTH_KEEPING):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))


def test_in_the_users_cache(monkeypatch, tmp_path):
    clean(monkeypatch, tmp_path / "not" / "yet")
    keep_programs()
    assert os.environ[FOLDER] == str(tmp_path / "not" / "yet" / "fairwave" / "programs")
    assert not (tmp_path / "not").exists()


def test_where_the_user_wants(monkeypatch, tmp_path):
    clean(monkeypatch, tmp_path)
    monkeypatch.setenv(FOLDER, "elsewhere")
    keep_programs()
    assert os.environ[FOLDER] == "elsewhere"


def test_nowhere_if_nothing_can_be_written(monkeypatch, tmp_path):
    clean(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    keep_programs()
    assert FOLDER not in os.environ
