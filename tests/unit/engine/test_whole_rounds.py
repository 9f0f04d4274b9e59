"""A round as one program is the round of single programs, to rounding; so are rounds of several cells side by side."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import pytest

from fairwave.engine import gpu_memory
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.cell_group import CellGroup
from fairwave.engine.device_map import Execution
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.model_copies import ROOM
from fairwave.engine.whole_rounds import NotOneProgram, WholeRounds
from fairwave.runs.experiment import CompletedRound, run_rounds, run_together
from fairwave.runs.packing import pack_state
from tests.builders import clusters_cell

STEPS, WHOLE = Execution("vectorised", one_program=False), Execution("vectorised", one_program=True)
TOLERANCE = 2e-4


def values(done: CompletedRound) -> list[np.ndarray]:
    keyless = jax.tree.map(
        lambda leaf: jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf,
        (done.record, done.state),
    )
    return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(keyless)]


def agree(one: CompletedRound, other: CompletedRound) -> None:
    assert one.round_index == other.round_index and one.ended == other.ended
    for ours, theirs in zip(values(one), values(other), strict=True):
        scale = np.nanmax(np.abs(theirs)) if theirs.size and not np.isnan(theirs).all() else 1.0
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * max(scale, 1e-3))


def same(one: CompletedRound, other: CompletedRound) -> bool:
    records = zip(jax.tree.leaves(one.record), jax.tree.leaves(other.record), strict=True)
    equal = all(np.array_equal(ours, theirs, equal_nan=True) for ours, theirs in records)
    return equal and pack_state(one.state) == pack_state(other.state)


@pytest.fixture
def one_program(monkeypatch) -> list[int]:
    """How many cells each round had that was computed as one program."""
    sizes, call = [], WholeRounds.__call__

    def noting(self, states, round_index):
        sizes.append(len(states))
        return call(self, states, round_index)

    monkeypatch.setattr(WholeRounds, "__call__", noting)
    return sizes


@pytest.mark.parametrize(
    ("scheme", "overrides"),
    [
        ("proposed", ("cell.participants=3",)),
        pytest.param(
            "fair_noise_only", ("learning.gradient_exchange=true", "run.evaluate_every=2"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_round_as_one_program(scheme, overrides, one_program):
    whole = list(run_rounds(clusters_cell(scheme, *overrides, execution=WHOLE), 3))
    assert one_program == [1, 1, 1]
    for one, other in zip(whole, run_rounds(clusters_cell(scheme, *overrides, execution=STEPS), 3), strict=True):
        agree(one, other)


def cells_of(seeds: Sequence[int], *overrides: str, scheme: str = "proposed") -> list[SimulatedCell]:
    return [clusters_cell(scheme, f"run.seed={seed}", *overrides, execution=WHOLE) for seed in seeds]


@pytest.mark.slow
def test_seeds_side_by_side_are_what_they_are_alone(one_program):
    together = list(run_together(CellGroup(cells_of(range(3))), 3))
    assert one_program == [3, 3, 3]
    for place, cell in enumerate(cells_of(range(3))):
        for done, alone in zip(together, run_rounds(cell, 3), strict=True):
            agree(done[place], alone)
    first, second = (values(together[-1][place]) for place in (0, 1))
    assert any(not np.array_equal(one, other, equal_nan=True) for one, other in zip(first, second, strict=True))


def test_a_group_that_has_lost_a_cell_goes_on_with_the_same_bits(one_program):
    whole = list(run_together(CellGroup(cells_of(range(3))), 4))
    states = [whole[1][place].state for place in (0, 2)]
    rest = list(run_together(CellGroup(cells_of(range(3)), [0, 2]), 4, states, 2))
    assert set(one_program) == {3}
    for before, after in zip(whole[2:], rest, strict=True):
        assert same(before[0], after[0]) and same(before[2], after[1])


@pytest.mark.slow
def test_each_cell_ends_when_it_is_time():
    cells = cells_of(range(2), "run.target_accuracy=0.5")
    alone = [[done.ended for done in run_rounds(cell, 12)] for cell in cells_of(range(2), "run.target_accuracy=0.5")]
    together = list(run_together(CellGroup(cells), 12))
    ends = [[done.ended for done in of_cell if done is not None] for of_cell in zip(*together, strict=True)]
    assert ends == alone and all(one[-1] is EndReason.TARGET_ACCURACY for one in ends)


@pytest.mark.slow
def test_room_for_models_grows_together():
    often_late = "cell.straggler_probability=0.9"
    cells = [
        clusters_cell("proposed", f"run.seed={seed}", often_late, devices=24, rate=0.01, execution=WHOLE)
        for seed in range(2)
    ]
    rounds = list(run_together(CellGroup(cells), 14))
    assert all(done.state.server.copies.places > ROOM for done in rounds[-1])
    alone = list(run_rounds(clusters_cell("proposed", "run.seed=1", often_late, devices=24, rate=0.01), 14))
    agree(rounds[-1][1], alone[-1])


@pytest.mark.slow
def test_cells_that_compute_differently_are_refused_and_run_all_the_same(one_program):
    cells = [*cells_of([0]), *cells_of([0], scheme="max_power")]
    with pytest.raises(NotOneProgram, match="differently"):
        WholeRounds(cells).compile(tuple(cell.start() for cell in cells), 0)
    together = list(run_together(CellGroup(cells), 2))
    assert not one_program
    for place, scheme in enumerate(("proposed", "max_power")):
        for done, alone in zip(together, run_rounds(clusters_cell(scheme, execution=STEPS), 2), strict=True):
            agree(done[place], alone)


@pytest.mark.slow
def test_a_program_that_does_not_fit_into_memory_is_not_used(monkeypatch, one_program):
    monkeypatch.setattr(gpu_memory, "free_bytes", lambda: 1_000_000)
    assert len(list(run_rounds(clusters_cell("proposed", execution=WHOLE), 2))) == 2 and one_program == [1, 1]
    monkeypatch.setattr(gpu_memory, "free_bytes", lambda: 1_000)
    assert len(list(run_rounds(clusters_cell("proposed", execution=WHOLE), 2))) == 2 and one_program == [1, 1]


def test_on_a_cpu_nothing_changes(one_program):
    list(run_rounds(clusters_cell("proposed"), 2))
    assert not one_program


def test_what_is_no_part_of_a_program(monkeypatch):
    """Noise from the host, and updates that take much memory."""
    cell = clusters_cell("proposed", execution=WHOLE)
    assert cell.may_be_one_program()
    privacy = cell.scenario.privacy.model_copy(update={"noise_source": "hardened"})
    cell.scenario = cell.scenario.model_copy(update={"privacy": privacy})
    assert not cell.may_be_one_program()
    monkeypatch.setattr("fairwave.engine.cell.LIGHT_ROUND", 5 * 4 * 274)  # five devices, 275 parameters
    assert not clusters_cell("proposed", execution=WHOLE).may_be_one_program()
    monkeypatch.setattr("fairwave.engine.cell.LIGHT_ROUND", 5 * 4 * 275)
    assert clusters_cell("proposed", execution=WHOLE).may_be_one_program()
