"""The search for a best response: draws stay in the space, outcomes are what NumPy makes of them, the best is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr

from fairwave.report.best_response_page import verdict
from fairwave.scenario.loading import load_scenario
from fairwave.studies.best_response import HONEST, LAST, Search, outcome, search
from fairwave.studies.jobs import Job
from fairwave.studies.strategies import AXES, LATEST_START, Strategy, axes_of, drawn, near

ROUNDS = 12


@pytest.fixture(scope="module")
def game() -> Search:
    return Search(load_scenario("small"), "proposed", ROUNDS, (0, 1), (100, 101, 102))


def results(seeds: Sequence[int], deviation: float, energy_j: float, loss: float, device: int, num: int) -> xr.Dataset:
    """Runs in which one device has these values, all alike, and the others have none."""
    shape = (1, len(seeds), ROUNDS, num)

    def held(value: float) -> tuple[tuple[str, ...], np.ndarray]:
        values = np.zeros(shape)
        values[..., device] = value * (1.0 + 0.01 * np.arange(len(seeds)))[None, :, None]
        return ("scheme", "seed", "round", "device"), values

    named = {"deviation": deviation, "energy_j": energy_j, "received_loss": loss}
    return xr.Dataset({name: held(value) for name, value in named.items()})


def test_draws_stay_in_the_space_and_repeat(game: Search) -> None:
    axes = axes_of(game.scenario)
    limits = {axis.behaviour: (axis.low, axis.high) for axis in axes}
    for number in range(50):
        one = drawn(axes, np.random.default_rng(number), ROUNDS)
        assert one == drawn(axes, np.random.default_rng(number), ROUNDS)
        close = near(axes, one, np.random.default_rng(number), ROUNDS)
        for strategy in (one, close):
            assert 1 <= strategy.first_round <= min(LATEST_START, ROUNDS // 2)
            for name, value in strategy.choices:
                assert limits[name][0] - 1e-3 <= value <= limits[name][1] + 1e-3
            assert all(entry.devices == (3,) for entry in strategy.entries(3))


def test_a_proof_of_privacy_rules_out_what_it_does_not_cover() -> None:
    names = {axis.behaviour for axis in axes_of(load_scenario("fair"))}
    assert names == {axis.behaviour for axis in AXES} - {"part_of_data"}


def test_outcome_against_numpy(game: Search) -> None:
    num, device = game.scenario.cell.num_devices, game.device
    played = results((0, 1), 0.5, 0.1, 0.4, device, num)
    honest = results((0, 1), 0.0, 0.2, 0.2, device, num)
    found = outcome(Strategy((("fewer_iterations", 0.1),), 3), played, honest, game)
    scale, reference = game.scenario.utility.effort_scale, game.scenario.utility.energy_reference_j
    factor = 1.0 + 0.01 * np.arange(2)
    value = scale - 0.5 * factor - 0.1 * factor * (0.1 * factor - reference)
    before = scale - 0.2 * factor * (0.2 * factor - reference)
    np.testing.assert_allclose(found.utility_gain, (value - before) / np.abs(before), rtol=1e-12)
    np.testing.assert_allclose(found.loss_change, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.energy_saved, 0.5, rtol=1e-12)
    assert found.cheap_gain == 0.0
    assert LAST < ROUNDS
    deviations, energies = np.meshgrid(np.linspace(0.0, 1.0, 11), np.linspace(0.0, 2.0 * reference, 2_001))
    best = (scale - deviations - energies * (energies - reference)).max()  # by trying everything
    np.testing.assert_allclose(found.most_gain, (best - before) / np.abs(before), rtol=1e-9)


def test_the_search_finds_what_pays_and_judges_it_on_fresh_seeds(game: Search) -> None:
    """A cell in which deviation never follows work: the less work, the better, and no copy is worse."""
    seen: list[tuple[str, tuple[int, ...]]] = []

    def run(jobs: Sequence[Job]) -> dict[str, xr.Dataset]:
        found = {}
        for job in jobs:
            order = job.order
            seen.append((job.name, order.seeds))
            entries = {entry.behaviour: entry.strength for entry in order.scenario.cheating.adversaries}
            share = entries.get("fewer_iterations", 1.0)
            reference = game.scenario.utility.energy_reference_j
            energy_j = reference * (0.5 + 0.4 * share)  # the cost term falls towards half the reference
            found[job.name] = results(
                order.seeds, 0.0, energy_j, 0.2, game.device, game.scenario.cell.num_devices
            ).assign_coords(seed=list(order.seeds))
        return found

    answer = search(game, 16, run)
    assert "fewer_iterations" in answer.best_utility.strategy
    assert answer.price_of_honesty.mean > 0.0
    assert answer.best_saving.cheap_gain > 0.0
    assert all((one.utility_gain <= one.most_gain + 1e-12).all() for one in answer.tried)
    assert answer.price_of_honesty.mean <= answer.bound.mean
    assert "No strategy, known or not, can gain more than" in verdict(answer)
    assert answer.best_utility.utility_gain.shape == (3,)
    gains = [float(np.mean(one.utility_gain)) for one in answer.tried]
    assert gains == sorted(gains, reverse=True)
    assert len(answer.tried) == 24
    names = [name for name, _ in seen]
    assert names.count("honest") == 2
    assert {seeds for name, seeds in seen if name.startswith(("fresh", "honest-fresh"))} == {(100, 101, 102)}


def test_honest_plays_nothing() -> None:
    assert HONEST.entries(0) == ()
    assert HONEST.words == "honest from round 1"
