"""Checkpoints in pieces come back to the bit, and only what has changed is written."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fairwave
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import pack, rows_of
from fairwave.runs.pieces import pieces_named, put_together, taken_apart
from fairwave.runs.store import RunStore

TRACK = Track("proposed", 0)
DEVICES, PARAMETERS = 40, 500


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=12))
def test_a_state_comes_back_from_its_pieces(state: bytes, cuts: list[int]) -> None:
    places = sorted({cut for cut in cuts if cut <= len(state)})
    spans = list(zip(places[::2], places[1::2], strict=False))
    rest, pieces = taken_apart(state, spans)
    assert put_together(rest, lambda digest: bytes(pieces[digest])) == state
    assert pieces_named(rest) == set(pieces)


def _state(round_index: int, copies: np.ndarray) -> bytes:
    model = np.random.default_rng(round_index).random((PARAMETERS, 8), np.float32)
    return pack({"global_params.0.weight": model, "copies.models.0.weight": copies, "deviation": copies[:, 0, 0]})


def test_rows_are_those_of_single_devices_and_of_nothing_else() -> None:
    copies = np.random.default_rng(0).random((DEVICES, 8, PARAMETERS // 8), np.float32)
    state = _state(0, copies)
    rows = rows_of(state)
    assert [state[start:stop] for start, stop in rows] == [copies[k].tobytes() for k in range(DEVICES)]
    small = pack({"copies.each.std": np.zeros(900), "copies.models.0.bias": np.zeros((DEVICES, 10), np.float32)})
    assert rows_of(small) == []
    past = np.random.default_rng(0).random((3, DEVICES, 1024), np.float32)
    assert len(rows_of(pack({"device_history.recent.sketches": past}))) == 3 * DEVICES


def test_only_what_has_changed_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    store = RunStore.create(tmp_path / "a", Order(fairwave.load_scenario("small"), ("proposed",), (0,), 9))
    store.begin(TRACK, b"data", {"distance_m": np.arange(3.0)})
    draw, kept = np.random.default_rng(1), dict[int, bytes]()
    copies = draw.random((DEVICES, 8, PARAMETERS // 8), np.float32)
    told = {"loss": np.zeros(3), "global_loss": np.zeros(()), "test_accuracy": np.zeros(())}
    for number in range(4):
        copies[2 * number : 2 * number + 2] = draw.random((2, 8, PARAMETERS // 8), np.float32)
        copies[30:] = 0.0  # equal rows are one
        state = _state(number, copies)
        store.append(TRACK, [FinishedRound(number, told, [])], state, rows_of(state))
        assert store.checkpoint(TRACK) == state
        with sqlite3.connect(tmp_path / "a" / "run.sqlite") as reader:
            rows = dict(reader.execute("SELECT rowid, content FROM piece"))
        assert len(rows) == 31
        assert number == 0 or len(rows.items() - kept.items()) == 2
        kept = rows
    store.close()
    again = RunStore(tmp_path / "a")
    assert again.checkpoint(TRACK) == _state(3, copies)
    again.close()
