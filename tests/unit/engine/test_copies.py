"""Copies that are made again are the copies that were sent, however long ago."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.model_copies import ROOM, AddressedCopies, StoredCopies
from fairwave.engine.server_steps import ServerRules
from fairwave.engine.state import State
from fairwave.runs.packing import pack, pack_state, unpack, unpack_state
from tests.builders import clusters_cell

DEVICES = 24
OFTEN_LATE = "cell.straggler_probability=0.9"


def cell(name: str, *overrides: str, devices: int = DEVICES) -> SimulatedCell:
    return clusters_cell(name, *overrides, devices=devices, rate=0.01)


def play(run: SimulatedCell, count: int, state: State | None = None, first: int = 0) -> list[State]:
    states = [run.start() if state is None else state]
    for number in range(first, first + count):
        states.append(run.round(states[-1], number)[0])
    return states


@pytest.mark.parametrize("name", ["proposed", "max_power", "no_privacy"])
def test_they_are_those_that_would_have_been_kept(name, monkeypatch):
    """Where nine of ten updates come late, most devices hold the copy of an earlier round."""
    run = cell(name, OFTEN_LATE)
    made = play(run, 6)
    assert isinstance(made[-1].server.copies, AddressedCopies)
    monkeypatch.setattr(ServerRules, "copies_can_be_made_again", False)
    kept = play(cell(name, OFTEN_LATE), 6)
    assert isinstance(kept[-1].server.copies, StoredCopies)
    for ours, theirs in zip(made, kept, strict=True):
        for a, b in zip(*(jax.tree.leaves(run.copies(state)) for state in (ours, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_there_is_room_for_as_many_models_as_are_held():
    run = cell("proposed", OFTEN_LATE)
    states = play(run, 16)
    released = [np.asarray(state.server.copies.each.released) for state in states]
    assert max(np.unique(each).size for each in released) > ROOM
    assert states[-1].server.copies.places > ROOM
    for earlier, later in itertools.pairwise(states):
        same = np.asarray(earlier.server.copies.each.released) == np.asarray(later.server.copies.each.released)
        before, after = (jax.tree.leaves(run.copies(state))[1] for state in (earlier, later))
        assert same.any() and (np.asarray(before)[same] == np.asarray(after)[same]).all()


def test_a_stored_state_goes_on_where_it_was():
    run = cell("proposed", OFTEN_LATE)
    states = play(run, 16)
    at = next(place for place, state in enumerate(states) if state.server.copies.places > ROOM)
    restored = unpack_state(pack_state(states[at]), like=run.start())
    again = play(run, 16 - at, restored, at)
    assert pack_state(again[-1]) == pack_state(states[-1])


@pytest.mark.slow
def test_a_checkpoint_grows_by_numbers_not_by_models():
    few, many = (cell("proposed", devices=count) for count in (12, 24))
    sizes = [len(pack_state(play(run, 1)[-1])) for run in (few, many)]
    model = sum(leaf.nbytes for leaf in jax.tree.leaves(few.start().server.global_params))
    assert sizes[1] - sizes[0] < 12 * model


def test_where_something_looks_at_copies_they_are_kept():
    looking = (("proposed", "defences.use=['norm_clipping']"), ("cgsv",), ("proposed", "privacy.copies=nested"))
    for name, *overrides in looking:
        assert isinstance(cell(name, *overrides).start().server.copies, StoredCopies)


def test_a_checkpoint_that_holds_scales_instead_of_logarithms_is_read():
    """Checkpoints once numbered their arrays, and held the effort model's scale, which may be 0."""
    run = cell("proposed")
    state = play(run, 3)[-1]
    scales = np.asarray(state.devices.effort.effort.scale)
    assert (scales == 0.0).any() and (scales > 0.0).any()
    kept = unpack(pack_state(state))
    names = [name for name in kept if name != "places"]
    old = {str(index): kept[name] for index, name in enumerate(names)}
    old |= {str(index): np.exp(kept[name]) for index, name in enumerate(names) if name.endswith(".log_scale")}
    restored = unpack_state(pack({"places": kept["places"]} | old), like=run.start())
    np.testing.assert_allclose(restored.devices.effort.effort.scale, scales, rtol=1e-12)
    np.testing.assert_array_equal(restored.server.deviation, state.server.deviation)
