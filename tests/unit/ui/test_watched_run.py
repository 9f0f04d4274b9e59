"""A run under watch: what its page is told, and what becomes of it while its file changes, breaks or goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from fairwave.engine.end_reasons import EndReason
from fairwave.runs.database import FILE
from fairwave.runs.seal import FILE as SEAL
from fairwave.ui.run_state import RunState
from fairwave.ui.watched_run import WatchedRun
from tests.unit.ui.stored_runs import MAX_POWER, PROPOSED, a_run, an_order, being_written, energy_j, write_rounds

DATA = Path(__file__).parents[2] / "data"


def looked_at(folder: Path) -> WatchedRun:
    run = WatchedRun(folder)
    run.refresh()
    return run


def flip_last_byte_of(content: bytes, wanted: bytes) -> bytes:
    place = content.index(wanted) + len(wanted)
    return content[: place - 1] + bytes([content[place - 1] ^ 255]) + content[place:]


def test_curves_are_what_was_stored(tmp_path):
    run = looked_at(a_run(tmp_path / "a"))
    assert (run.state, run.note, run.progress.done, run.progress.total) == (RunState.DONE, "", 8, 8)
    proposed = run.values({})[0]
    assert (proposed["scheme"], proposed["seed"], proposed["rounds"]) == ("proposed", 0, 4)
    assert proposed["tested"] == [0.1, 0.2, 0.3, 0.4]
    assert proposed["loss"] == pytest.approx([1.2, 0.6, 0.4, 0.3])
    # Energies by hand: 100, 200, 300 mJ times the round, and device 2 in outage in the second.
    assert proposed["energy_mj"] == pytest.approx([200, 300, 600, 800])
    first_two = np.array([(100 + 200) / 2, (200 + 400) / 2, 300])
    assert proposed["spread_mj"][0] == pytest.approx(81.6497) and proposed["spread_mj"][1] == pytest.approx(
        np.std(first_two), rel=1e-5
    )
    paid = np.array([energy_j(number) for number in range(4)])
    means = paid.sum(axis=0) / [4, 4, 3] * 1e3
    assert proposed["mean_energy_mj"] == pytest.approx(means.mean(), rel=1e-5)
    assert proposed["energy_std_mj"] == pytest.approx(means.std(), rel=1e-5)


def test_a_run_grows_under_its_eyes(tmp_path):
    with being_written(tmp_path / "a", an_order()) as store:
        run = looked_at(tmp_path / "a")
        assert run.state is RunState.RUNNING and run.progress.done == 0
        write_rounds(store, PROPOSED, range(2))
        run.refresh()
        assert run.tracks[PROPOSED].rounds == 2 and run.state is RunState.RUNNING
        write_rounds(store, PROPOSED, range(2, 4))
        run.refresh()
        assert run.values({PROPOSED: 2})[0]["tested"] == [0.3, 0.4]
        assert run.values({})[0]["tested"] == [0.1, 0.2, 0.3, 0.4] and run.generation == 1
    run.refresh()
    assert run.state is RunState.INTERRUPTED and run.progress.done == 4


def test_it_is_resumed_and_extended_under_its_eyes(tmp_path):
    run = looked_at(a_run(tmp_path / "a", rounds=4, stored=3))
    assert run.state is RunState.INTERRUPTED
    with being_written(tmp_path / "a", an_order(4)) as store:
        write_rounds(store, PROPOSED, range(3, 4))
        write_rounds(store, MAX_POWER, range(3, 4))
    run.refresh()
    assert run.state is RunState.DONE and run.progress.total == 8
    with being_written(tmp_path / "a", an_order(6, ("proposed", "max_power", "fedavg"))) as store:
        run.refresh()
        assert (run.state, run.progress.done, run.progress.total) == (RunState.RUNNING, 8, 18)
        write_rounds(store, PROPOSED, range(4, 6), EndReason.TARGET_LOSS)
    run.refresh()
    assert run.tracks[PROPOSED].rounds == 6 and run.tracks[PROPOSED].ended is EndReason.TARGET_LOSS
    assert run.generation == 1  # nothing was read twice


def test_a_track_that_ended_early_counts_as_done(tmp_path):
    with being_written(tmp_path / "a", an_order(9, ("proposed",))) as store:
        write_rounds(store, PROPOSED, range(2), EndReason.TARGET_ACCURACY)
    run = looked_at(tmp_path / "a")
    assert run.state is RunState.DONE and run.progress.done == run.progress.total == 9
    assert run.values({})[0]["ended"] == EndReason.TARGET_ACCURACY.in_words()


def test_removed_and_begun_anew(tmp_path):
    run = looked_at(a_run(tmp_path / "a"))
    shutil.rmtree(tmp_path / "a")
    run.refresh()
    assert run.state is RunState.REMOVED and run.tracks[PROPOSED].rounds == 4  # what was known can still be shown
    a_run(tmp_path / "a", rounds=5, stored=2)
    run.refresh()
    assert run.state is RunState.INTERRUPTED and run.tracks[PROPOSED].rounds == 2 and run.generation == 2


@pytest.mark.parametrize("sealed", [True, False])
def test_damaged_under_its_eyes_and_restored(tmp_path, sealed):
    """Two bytes of a stored value; without a seal, as in a run that was killed, digests find them."""
    path = a_run(tmp_path / "a") / FILE
    if not sealed:
        (path.parent / SEAL).unlink()
    run, sound = looked_at(path.parent), path.read_bytes()
    assert run.state is RunState.DONE
    path.write_bytes(flip_last_byte_of(sound, energy_j(2).tobytes()))
    run.refresh()
    assert run.state is RunState.DAMAGED and "damaged" in run.note
    run.refresh()
    assert run.state is RunState.DAMAGED
    path.write_bytes(sound)
    run.refresh()
    assert run.state is RunState.DONE and run.note == ""


@pytest.mark.parametrize("size", [0, 100, 8_192])
def test_a_file_cut_short_is_damaged(tmp_path, size):
    path = a_run(tmp_path / "a") / FILE
    run = looked_at(path.parent)
    with path.open("r+b") as stream:
        stream.truncate(size)
    run.refresh()
    assert run.state is RunState.DAMAGED


def test_older_formats_are_read(tmp_path):
    for stored in sorted(DATA.glob("run-format-*.sqlite")):
        folder = tmp_path / stored.stem
        folder.mkdir()
        shutil.copy(stored, folder / FILE)
        run = looked_at(folder)
        assert run.state is RunState.DONE and run.values({})[0]["rounds"] == 2


def test_a_long_run_is_read_in_parts(tmp_path, monkeypatch):
    from fairwave.ui import short_reads, watched_run

    monkeypatch.setattr(watched_run, "AT_ONCE_S", -1.0)
    monkeypatch.setattr(short_reads, "LONGEST_S", 0.0)
    run = looked_at(a_run(tmp_path / "a"))
    assert run.progress.done == 2  # a round of each track
    for _ in range(3):
        run.refresh()
    assert run.progress.done == 8 and run.state is RunState.DONE
