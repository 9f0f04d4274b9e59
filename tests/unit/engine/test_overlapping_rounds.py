"""A round that begins while the one before is still computed is the round that it would have been."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.model_copies import ROOM
from fairwave.runs.experiment import CompletedRound, run_rounds
from fairwave.runs.packing import pack_state
from tests.builders import clusters_cell

OFTEN_LATE = "cell.straggler_probability=0.9"


@pytest.fixture
def begun_early(monkeypatch) -> list[int]:
    """The rounds, from 0, that began early."""
    rounds = []
    begin = SimulatedCell.begin_next

    def noting(cell, before, state, round_index):
        begun = begin(cell, before, state, round_index)
        if begun is not None:
            rounds.append(round_index)
        return begun

    monkeypatch.setattr(SimulatedCell, "begin_next", noting)
    return rounds


def alone(cell: SimulatedCell, count: int) -> list[CompletedRound]:
    """The same rounds, one after the other."""
    state, rounds = cell.start(), []
    for number in range(count):
        state, record = cell.round(state, number)
        rounds.append(CompletedRound(number, state, record, cell.end_reason(state, record, number + 1)))
    return rounds


def same(one: CompletedRound, other: CompletedRound) -> bool:
    pairs = zip(jax.tree.leaves(one.record), jax.tree.leaves(other.record), strict=True)
    records = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
    return records and pack_state(one.state) == pack_state(other.state) and one.ended == other.ended


@pytest.mark.parametrize("overrides", [(), ("cell.participants=3",), (OFTEN_LATE,)])
def test_rounds_are_the_same(overrides, begun_early):
    early = list(run_rounds(clusters_cell("proposed", *overrides), 6))
    assert begun_early
    assert all(map(same, early, alone(clusters_cell("proposed", *overrides), 6)))


def test_a_round_that_needs_room_for_more_models_waits(begun_early):
    cell = clusters_cell("proposed", OFTEN_LATE, devices=24, rate=0.01)
    rounds = list(run_rounds(cell, 16))
    assert 0 < len(begun_early) < 15
    assert rounds[-1].state.server.copies.places > ROOM
    assert all(map(same, rounds, alone(clusters_cell("proposed", OFTEN_LATE, devices=24, rate=0.01), 16)))


def test_a_target_still_ends_the_track_at_its_round(begun_early):
    rounds = list(run_rounds(clusters_cell("proposed", "run.target_accuracy=0.01"), 6))
    assert begun_early == [1]
    assert [done.ended for done in rounds] == [EndReason.TARGET_ACCURACY]


def test_a_witness_sees_only_rounds_that_count():
    cell, seen = clusters_cell("proposed", "run.target_accuracy=0.01"), []
    cell.witness = lambda at_server: seen.append(int(at_server.round_index))
    assert len(list(run_rounds(cell, 6))) == 1
    assert seen == [0]
