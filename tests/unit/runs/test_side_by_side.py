"""Tracks that are computed side by side, as on a GPU, are stored like any others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fairwave
from fairwave.engine.device_map import Execution
from fairwave.runs.experiment import Experiment
from fairwave.runs.order import Order, Track
from fairwave.runs.prepared_groups import prepared
from fairwave.runs.session import TrackProgress, results, run
from fairwave.runs.store import RunStore
from fairwave.runs.track_groups import Group, side_by_side
from tests.builders import SOFTMAX_MNIST

WHOLE = Execution("vectorised", one_program=True)
SCHEMES = ["proposed", "max_power"]


def order(*overrides: str, seeds: int = 3, rounds: int = 4) -> Order:
    scenario = fairwave.load_scenario("small", [*SOFTMAX_MNIST, *overrides])
    return Order.checked(scenario, SCHEMES, range(seeds), rounds)


def stored(folder: Path) -> xr.Dataset:
    store = RunStore(folder)
    try:
        return results(store)
    finally:
        store.close()


@pytest.mark.slow
def test_results_are_those_of_tracks_one_by_one(tmp_path):
    said: list[Track] = []
    run(order(), tmp_path / "together", "test", lambda step: said.append(step.track), execution=WHOLE)
    run(order(), tmp_path / "alone", "test")
    together, alone = stored(tmp_path / "together"), stored(tmp_path / "alone")
    assert together.sizes == alone.sizes and together.sizes["seed"] == 3
    for name in ("loss", "energy_j", "deviation", "test_accuracy", "noise_std"):
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-3, atol=1e-4)
    in_turns = [track for track in said if track.scheme == "proposed"]
    assert in_turns[:3] == [Track("proposed", seed) for seed in range(3)]  # all three begin before one goes on


@pytest.mark.slow
def test_what_was_interrupted_goes_on_with_the_same_bits(tmp_path):
    run(order(), tmp_path / "whole", "test", execution=WHOLE)

    def stop(step: TrackProgress) -> None:
        if step.rounds == 2 and step.track.seed == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(order(), tmp_path / "broken", "test", stop, execution=WHOLE)
    begun = stored(tmp_path / "broken")["loss"]
    assert np.isnan(begun.sel(scheme="proposed")).any()
    run(order(), tmp_path / "broken", "test", execution=WHOLE)
    whole, broken = stored(tmp_path / "whole"), stored(tmp_path / "broken")
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], broken[name], err_msg=name)


@pytest.mark.slow
def test_a_track_that_has_ended_is_not_gone_on_with(tmp_path):
    overrides = ("run.target_accuracy=0.6",)
    run(order(*overrides, rounds=12), tmp_path / "together", "test", execution=WHOLE)
    run(order(*overrides, rounds=12), tmp_path / "alone", "test")
    rounds = [(~np.isnan(stored(tmp_path / name)["global_loss"])).sum("round") for name in ("together", "alone")]
    np.testing.assert_array_equal(*rounds)
    assert not run(order(*overrides, rounds=12), tmp_path / "together", "test", execution=WHOLE)


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param("fairwave.engine.cell.LIGHT_ROUND", id="heavy"),
        pytest.param("fairwave.engine.gpu_memory.free_bytes", id="too large", marks=pytest.mark.slow),
    ],
)
def test_tracks_that_cannot_be_one_program_are_run_one_by_one(refused, monkeypatch):
    """No cell is kept in memory beside the one that is run."""
    monkeypatch.setattr(refused, 1_000 if refused.endswith("ROUND") else lambda: 1_000)
    wanted = order()
    experiment = Experiment(wanted, execution=WHOLE)
    groups = list(side_by_side([(track, 0) for track in wanted.tracks()], wanted.seeds, 3))
    found = [(group.members, len(cells.cells), cells.is_one_program) for group, cells in prepared(experiment, groups)]
    tracks = [Track(scheme, seed) for scheme in SCHEMES for seed in range(3)]
    assert found == [([track], 1, False) for track in tracks]


def test_groups():
    seeds = range(10, 15)
    left = [(Track(scheme, seed), 2 if seed == 13 else 0) for seed in seeds for scheme in SCHEMES]
    assert list(side_by_side(left, seeds, 1)) == [Group([track], [0]) for track, _ in left]

    def members(scheme: str, *seeds: int) -> list[Track]:
        return [Track(scheme, seed) for seed in seeds]

    assert list(side_by_side(left, seeds, 3)) == [
        Group(members("proposed", 10, 11, 12), [0, 1, 2]),
        Group(members("max_power", 10, 11, 12), [0, 1, 2]),
        Group(members("proposed", 13, 14), [0]),
        Group(members("max_power", 13, 14), [0]),
        Group(members("proposed", 13, 14), [1]),
        Group(members("max_power", 13, 14), [1]),
    ]
