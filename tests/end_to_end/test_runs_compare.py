"""`fairwave runs compare` at 80 columns, from stored runs and without training."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.command_line import fairwave
from tests.unit.ui.stored_runs import a_run


def test_all_that_is_said_of_two_runs_fits_80_columns(tmp_path: Path, capsys, monkeypatch):
    done, cut_short = a_run(tmp_path / "done", rounds=2), a_run(tmp_path / "cut-short", rounds=4, stored=3)
    said = fairwave(capsys, monkeypatch, "runs", "compare", str(done), str(cut_short))
    assert said.code == 0 and max(map(len, said.out.splitlines())) <= 80
    words = " ".join(said.out.split())
    assert "rounds asked for 2 4" in words and "With one seed, a difference may be chance" in words
    assert "Rounds are missing (see 'rounds'), so schemes that have trained longer cannot be compared fairly." in words
