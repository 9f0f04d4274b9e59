"""Run files of every format from 6 on can be read: each has a file here, written by the version that had it."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave.engine.end_reasons import EndReason
from fairwave.errors import StoreError
from fairwave.runs import migrations, store
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.history import session_now
from fairwave.runs.integrity import description_digest, history_and_plugins
from fairwave.runs.order import Track
from fairwave.runs.packing import rows_of

FILES = sorted((Path(__file__).parents[2] / "data").glob("run-format-*.sqlite"))


def test_every_format_has_its_file():
    assert [path.stem for path in FILES] == [f"run-format-{n}" for n in range(migrations.OLDEST, migrations.FORMAT + 1)]


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def folder(request, tmp_path: Path) -> Path:
    shutil.copy(request.param, tmp_path / "run.sqlite")
    return tmp_path


def test_it_reads_as_it_was_written(folder: Path):
    """Two rounds of three devices, the second of which reached its target: see tests/data/README.md."""
    with fairwave.open_run(folder) as run:
        assert run.results.sizes["round"] == 2 and run.schemes == ("proposed",) and run.seeds == (7,)
        assert run.results["energy_j"].values.sum() == pytest.approx(1.399276, rel=1e-6)
        legend = dict(zip(run.results["findings"].attrs["flag_meanings"].split(), [1, 2], strict=True))
        assert legend == {"not_finite": 1, "validation": 2}
        assert (run.results["findings"].values[0, 0, :, 1] == legend["validation"]).all()
        assert run.history[0].command.startswith("fairwave run") and len(run.history) == 1
        assert run.ended_early == [
            "proposed with seed 7 ended after 2 of 5 rounds: its target accuracy was reached (run.target_accuracy)"
        ]
        assert run.model("proposed")["0.weight"].shape == (12, 4)
        contents = {event.content for _, event in run.ledger("proposed")}
        assert contents == {"gradient", "update", "model", "deviation"}


def test_the_reason_of_the_end_is_stored(folder: Path):
    held = store.RunStore(folder)
    assert held.summary(Track("proposed", 7)).ended is EndReason.TARGET_ACCURACY
    held.close()


def test_an_older_format_is_migrated_in_memory_and_the_file_stays(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A step that a later version might have: a new column, and the format in the description."""

    def add_a_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE history ADD COLUMN host TEXT NOT NULL DEFAULT ''")
        connection.execute(f"UPDATE run SET value = '{migrations.FORMAT}' WHERE name = 'format'")
        described = dict(connection.execute("SELECT name, value FROM run WHERE name <> 'digest'"))
        digest = description_digest(described, *history_and_plugins(connection))
        connection.execute("UPDATE run SET value = ? WHERE name = 'digest'", (digest,))

    before = (folder / "run.sqlite").read_bytes()
    monkeypatch.setattr(migrations, "STEPS", {**migrations.STEPS, migrations.FORMAT: add_a_column})
    monkeypatch.setattr(migrations, "FORMAT", migrations.FORMAT + 1)
    with fairwave.open_run(folder) as run:
        assert np.isfinite(run.results["loss"]).all()
    assert (folder / "run.sqlite").read_bytes() == before


def test_a_writer_migrates_the_file_and_goes_on_with_it(folder: Path):
    track = Track("proposed", 7)
    reader = store.RunStore(folder)
    before, records = reader.checkpoint(track), reader.records(track)
    reader.close()
    writer = store.RunStore(folder, write=True)
    assert writer.about["format"] == str(migrations.FORMAT)
    assert writer.checkpoint(track) == before
    assert before is not None
    writer.extend(dataclasses.replace(writer.order, rounds=9), session_now("test"))  # the scenario has more fields now
    writer.append(track, [FinishedRound(2, records[1], [])], before, rows_of(before))
    writer.close()
    with sqlite3.connect(folder / "run.sqlite") as connection:
        assert connection.execute("SELECT value FROM run WHERE name = 'format'").fetchone() == (str(migrations.FORMAT),)
    again = store.RunStore(folder)
    assert (again.summary(track).rounds, again.checkpoint(track)) == (3, before)
    again.close()


def test_damage_to_an_old_description_is_found_before_it_is_migrated(tmp_path: Path):
    shutil.copy(FILES[0], tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as connection:
        connection.execute("UPDATE run SET value = '9' WHERE name = 'rounds'")
    for write in (False, True):
        with pytest.raises(StoreError, match="its description does not match its digest"):
            store.RunStore(tmp_path, write=write)


@pytest.mark.parametrize("stored", ["5", "99", "new"])
def test_formats_that_cannot_be_read_are_refused(folder: Path, stored: str):
    with sqlite3.connect(folder / "run.sqlite") as connection:
        connection.execute("UPDATE run SET value = ? WHERE name = 'format'", (stored,))
    with pytest.raises(StoreError, match=f"format {stored}, this version reads 6 to {migrations.FORMAT}; run it again"):
        fairwave.open_run(folder)
