"""Copies that are made again are the copies that were sent, however long ago."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from fairwave.data.sources import DataSet
from fairwave.engine import round as rounds
from fairwave.engine.model_copies import ROOM, Copies
from fairwave.engine.round import Cell
from fairwave.engine.state import State
from fairwave.runs.packing import pack_state, unpack_state
from tests.oracles.cells import small_cell
from tests.oracles.clusters import clusters

DEVICES = 24
OFTEN_LATE = "cell.straggler_probability=0.9"


@pytest.fixture(scope="module")
def data() -> DataSet:
    return clusters()


def cell(data: DataSet, name: str, *overrides: str) -> Cell:
    return small_cell(data, name, f"cell.num_devices={DEVICES}", *overrides)


def play(run: Cell, count: int, state: State | None = None, first: int = 0) -> list[State]:
    states = [run.start() if state is None else state]
    for number in range(first, first + count):
        states.append(run.round(states[-1], number)[0])
    return states


@pytest.mark.parametrize("name", ["proposed", "max_power", "no_privacy"])
def test_they_are_those_that_would_have_been_kept(data, name, monkeypatch):
    """Where nine of ten updates come late, most devices hold the copy of an earlier round."""
    run = cell(data, name, OFTEN_LATE)
    made = play(run, 6)
    assert isinstance(made[-1].received, Copies)
    monkeypatch.setattr(rounds, "can_be_made_again", lambda practice: False)
    kept = play(run, 6)
    assert not isinstance(kept[-1].received, Copies)
    for ours, theirs in zip(made, kept, strict=True):
        for a, b in zip(*(jax.tree.leaves(run.copies(state)) for state in (ours, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_there_is_room_for_as_many_models_as_are_held(data):
    run = cell(data, "proposed", OFTEN_LATE)
    states = play(run, 16)
    released = [np.asarray(state.received.each.released) for state in states]
    assert max(np.unique(each).size for each in released) > ROOM
    assert states[-1].received.places > ROOM
    for earlier, later in itertools.pairwise(states):
        same = np.asarray(earlier.received.each.released) == np.asarray(later.received.each.released)
        before, after = (jax.tree.leaves(run.copies(state))[1] for state in (earlier, later))
        assert same.any() and (np.asarray(before)[same] == np.asarray(after)[same]).all()


def test_a_stored_state_goes_on_where_it_was(data):
    run = cell(data, "proposed", OFTEN_LATE)
    states = play(run, 16)
    at = next(place for place, state in enumerate(states) if state.received.places > ROOM)
    restored = unpack_state(pack_state(states[at]), like=run.start())
    again = play(run, 16 - at, restored, at)
    assert pack_state(again[-1]) == pack_state(states[-1])


@pytest.mark.slow
def test_a_checkpoint_grows_by_numbers_not_by_models(data):
    few, many = (cell(data, "proposed", f"cell.num_devices={count}") for count in (12, 24))
    sizes = [len(pack_state(play(run, 1)[-1])) for run in (few, many)]
    model = sum(leaf.nbytes for leaf in jax.tree.leaves(few.start().global_params))
    assert sizes[1] - sizes[0] < 12 * model


def test_where_something_looks_at_copies_they_are_kept(data):
    looking = (("proposed", "defences.use=['norm_clipping']"), ("cgsv",), ("proposed", "privacy.copies=nested"))
    for name, *overrides in looking:
        assert not isinstance(cell(data, name, *overrides).start().received, Copies)
