"""The list of runs: which there are, how each stands, how long the rest will take."""

from __future__ import annotations

import os
import shutil

import pytest

from fairwave.runs.database import FILE
from fairwave.runs.folder import FEDERATION
from fairwave.ui.found_runs import FoundRuns
from fairwave.ui.pace import Pace
from tests.unit.ui.stored_runs import PROPOSED, a_run, an_order, being_written, write_rounds


def states(found: FoundRuns) -> dict[str, str]:
    return {row["name"]: row["state"] for row in found.look()}


def test_runs_are_found_with_their_states(tmp_path):
    a_run(tmp_path / "done")
    a_run(tmp_path / "sweep" / "point-1", stored=2)
    noise = a_run(tmp_path / "broken") / FILE
    noise.write_bytes(noise.read_bytes()[:-3000] + os.urandom(3000))
    (tmp_path / ".hidden").mkdir()
    shutil.copytree(tmp_path / "done", tmp_path / ".hidden" / "run")
    (tmp_path / "link").symlink_to(tmp_path / "done", target_is_directory=True)
    found = FoundRuns(tmp_path)
    with being_written(tmp_path / "live", an_order()) as store:
        write_rounds(store, PROPOSED, range(3))
        assert states(found) == {
            "live": "running",
            "done": "done",
            "sweep/point-1": "interrupted",
            "broken": "damaged",
        }
        first = found.look()[0]
        assert first["name"] == "live" and first["progress"] == {"done": 3, "total": 8}
        assert first["accuracy"] == 0.3 and first["spark"] == (0.1, 0.2, 0.3)
    assert states(found)["live"] == "interrupted"
    shutil.rmtree(tmp_path / "sweep")
    assert "sweep/point-1" not in states(found)


def test_a_folder_that_is_a_run_is_its_only_run(tmp_path):
    assert states(FoundRuns(a_run(tmp_path / "mine"))) == {"mine": "done"}


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert FoundRuns(tmp_path / "nothing").look() == []


def test_an_unchanged_run_is_not_read_again(tmp_path, monkeypatch):
    from fairwave.ui import found_runs

    a_run(tmp_path / "a")
    found = FoundRuns(tmp_path)
    before = found.look()
    monkeypatch.setattr(found_runs, "ShortReads", None)
    monkeypatch.setattr(found_runs, "check_seal", None)
    assert found.look() == before


def test_large_seals_wait_their_turn(tmp_path, monkeypatch):
    from fairwave.ui import found_runs

    path = a_run(tmp_path / "a") / FILE
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1  # in free space of a page: only the seal covers it
    path.write_bytes(whole)
    found = FoundRuns(tmp_path)
    monkeypatch.setattr(found_runs, "SEALS_S", -1.0)
    assert states(found) == {"a": "done"}
    monkeypatch.setattr(found_runs, "SEALS_S", 1.0)
    assert states(found) == {"a": "damaged"}


def test_federations_are_told_apart(tmp_path):
    from fairwave.runs.store import RunStore

    (tmp_path / "a").mkdir()
    RunStore.create(tmp_path / "a", an_order(), {"kind": FEDERATION}).close()
    assert [row["federation"] for row in FoundRuns(tmp_path).look()] == [True]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("late_by", "expected"), [(0.0, 20.0), (1.5, 18.5)])
def test_the_pace_is_that_of_the_rounds_seen(late_by, expected):
    """Begun to look 5 s after a round, of which there is one every 2 s: 10 are left."""
    clock = Clock()
    pace = Pace(clock)
    for clock.now, done in ((5.0, 3), (5.5, 3), (7.0, 4), (9.0, 5), (11.0, 6)):
        pace.note(done)
    clock.now += late_by
    assert pace.seconds_left(10) == pytest.approx(expected)


def test_there_is_no_pace_before_two_rounds_and_after_a_rest():
    clock = Clock()
    pace = Pace(clock)
    pace.note(3)
    assert pace.seconds_left(10) is None
    clock.now = 2.0
    pace.note(4)
    assert pace.seconds_left(10) == pytest.approx(20.0)
    pace.rest()
    assert pace.seconds_left(10) is None
    pace.note(4)
    clock.now = 3.0
    pace.note(1)  # removed and begun anew
    assert pace.seconds_left(10) is None
