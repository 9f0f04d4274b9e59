"""The family of the search, what its members measure, and which of them comes first."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from fairwave.errors import ArgumentError, ScenarioError
from fairwave.metrics import paper_distance
from fairwave.metrics.paper_distance import NUMBERS
from fairwave.studies.benchmark_search import BENCHMARKS, PROPOSED, jobs, trainings
from fairwave.studies.search_members import (
    SIMILAR_SPREADS,
    EnergyReading,
    LossReading,
    energy_readings,
    family_size,
    loss_readings,
    members,
    of_energies,
    of_losses,
    ranked,
    track_history,
)
from tests.unit.studies.planted_search import AVERAGES, RIVAL, ROUNDS, TRUTH, dataset, planted_runs, true_tracks


def test_the_family_shares_tracks():
    planned = jobs([], [0], None)
    assert len(list(trainings())) == 3 * 3 * 2 * 3 and len(planned) == len({job.name for job in planned}) == 14
    tracks = collections.Counter(scheme for job in planned for scheme in job.order.schemes)
    assert tracks == {PROPOSED: 12, **dict.fromkeys(BENCHMARKS, 6)}
    assert {job.order.rounds for job in planned} == {200}
    sizes = [len(job.order.schemes) for job in planned]
    assert sizes == sorted(sizes, reverse=True)


def test_every_training_finds_its_tracks_under_its_settings():
    held = {job.name: job.order for job in jobs([], [0, 1], 5)}
    for training in trainings():
        proposed, benchmark = held[training.proposed_run.name], held[training.benchmark_run.name]
        assert PROPOSED in proposed.schemes and training.benchmark in benchmark.schemes
        assert proposed.scenario.utility.effort_fit == training.effort_fit
        for order in (proposed, benchmark):
            privacy = order.scenario.privacy
            assert privacy.local_noise == (training.update_noise == "on")
            assert privacy.overwrite_model == (training.noise == "overwrite")
        assert benchmark.scenario.privacy.broadcast == (training.noise == "one_copy")
        assert not proposed.scenario.privacy.broadcast


def test_averages_are_combined():
    assert len(energy_readings(200)) == 4 and len(loss_readings(200)) == 18 and family_size(200) == 54 * 72
    assert {reading.energy_rounds for reading in energy_readings(200)} == {50, 200}
    assert {reading.loss_rounds for reading in loss_readings(7)} == {7}
    assert family_size(50) == 54 * 2 * 9


@pytest.mark.parametrize(
    ("override", "error", "said"),
    [
        ("privacy.broadcast=true", ArgumentError, "the search has values of its own for privacy.broadcast"),
        ("utility.effort_fit = prior", ArgumentError, "leave it out"),
        ("cell.num_device=3", ScenarioError, "did you mean 'num_devices'"),
    ],
)
def test_what_cannot_be_searched_is_refused(override, error, said):
    with pytest.raises(error, match=said):
        jobs([override], [0], 2)


@pytest.fixture(scope="module")
def ranking():
    return ranked(members(planted_runs(), ROUNDS))


def test_the_planted_member_comes_first_and_alone_fits(ranking):
    assert len(ranking) == family_size(ROUNDS)
    assert ranking[0].readings == {**TRUTH._asdict(), **AVERAGES}
    assert [member for member in ranking if member.fits] == [ranking[0]]
    distances = [member.distance for member in ranking]
    assert distances == sorted(distances)


def test_without_the_axes_another_comes_first(monkeypatch):
    """A mutant of the distance."""
    monkeypatch.setattr(paper_distance, "PUBLISHED", NUMBERS)
    first = ranked(members(planted_runs(), ROUNDS))[0]
    assert first.readings == {**RIVAL._asdict(), **AVERAGES}


def test_the_planted_values(ranking):
    ours = ranking[0].ours
    assert ours["energy_std"] == pytest.approx([0.01]) and ours["mean_energy"] == pytest.approx([0.8783])
    assert ours["mean_loss"] == pytest.approx([1.0626 / 0.998]) and ours["loss_std"] == pytest.approx([0.103])
    assert ours["figure_4b"] == pytest.approx([4.5e6, 4.5e6])
    assert ours["figure_2"] == pytest.approx([0.25 / 0.8783 - 0.0675, 0.25 / 0.8783 + 0.0675])


def test_seeds_are_averaged():
    """Energies of the benchmark are twice as high with the second seed: the geometric mean of 1 and 1/2."""
    runs = planted_runs(seeds=2)
    run = runs[TRUTH.benchmark_run.name]
    run["energy_j"][run.scheme.values.tolist().index(TRUTH.benchmark), 1] *= 2.0
    wanted = {**TRUTH._asdict(), **AVERAGES}
    (found,) = (member for member in members(runs, ROUNDS) if member.readings == wanted)
    assert found.ours["mean_energy"] == pytest.approx([0.8783 * 0.5**0.5])
    top = 0.25 / 0.8783 + 0.0675
    assert found.ours["figure_2"][1] == pytest.approx((top + 2 * top) / 2)


@pytest.fixture
def results():
    ours, base = true_tracks()
    cut = [{name: values[:4, :3] for name, values in track.items()} for track in (ours, base)]
    found = dataset(dict(zip((PROPOSED, "priced"), cut, strict=True)))
    return found.astype(float).assign_coords(path_loss_db=(("seed", "device"), [[90.0, 70.0, 80.0]]))


def test_devices_are_taken_in_the_order_of_their_path_loss(results):
    history = track_history(results, "priced", 0)
    assert np.array_equal(history.loss, results["loss"].sel(scheme="priced", seed=0).values[:, [1, 2, 0]])


def test_rounds_without_an_upload_do_not_count_and_lost_losses_do(results):
    """The nearest device sat out once and was in outage once; another's loss was not a number; a round is missing."""
    one = {"scheme": 1, "seed": 0}
    results["participating"][{**one, "round": 0, "device": 1}] = 0.0
    results["loss"][{**one, "round": 0, "device": 1}] = np.nan
    results["outage"][{**one, "round": 1, "device": 1}] = 1.0
    results["loss"][{**one, "round": 2, "device": 2}] = np.nan
    for name in ("participating", "outage", "loss", "energy_j"):
        results[name][{**one, "round": 3}] = np.nan
    history = track_history(results, "priced", 0)
    assert history.loss.shape == (3, 3)
    assert np.isnan(history.loss).tolist() == [[True, False, False], [False] * 3, [False] * 3]
    assert np.isinf(history.loss[2, 1])
    assert np.isnan(history.by_path_loss["energy_j"][:, 0]).tolist() == [True, True, False]
    pair = (track_history(results, PROPOSED, 0), history)
    values, said = of_losses(pair, LossReading(4, "ratio_of_means", "mean"))
    assert values["mean_loss"] == (0.0,) and values["figure_1"][1] == np.inf and not said[SIMILAR_SPREADS]
    values, _ = of_energies(pair, EnergyReading(4, "of_means"))
    ours = results["energy_j"].sel(scheme=PROPOSED, seed=0).values[:3].mean()
    base = np.nanmean(np.nanmean(history.by_path_loss["energy_j"], axis=0))
    assert values["mean_energy"] == pytest.approx([ours / base])


def test_a_device_that_never_uploads_is_left_out(results):
    results["outage"][{"device": 1}] = 1.0
    pair = (track_history(results, PROPOSED, 0), track_history(results, "priced", 0))
    values, said = of_energies(pair, EnergyReading(4, "mean_of_rounds"))
    assert np.isfinite([end for each in values.values() for end in each]).all()
    assert not said["benchmark energy rises"]
