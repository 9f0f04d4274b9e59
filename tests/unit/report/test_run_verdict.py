"""The first screen: one sentence and a few tiles, compared with numbers that are worked out here."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import xarray as xr

from fairwave.metrics.track_state import TrackState
from fairwave.report.figure_data import panels
from fairwave.report.first_screen import date_text, first_screen, tiles
from fairwave.report.joint_section import joint_panels, joint_sheet, joint_verdict
from fairwave.report.privacy_account import run_account
from fairwave.report.proved_epsilon import ProvedEpsilon, proved_epsilon
from fairwave.report.run_summary import RunSummary, summarise
from fairwave.report.run_verdict import verdict
from fairwave.report.section import RunReport
from fairwave.scenario.loading import load_scenario
from tests.made_up_results import DIMS, made_up_results
from tests.statements import made_up

ROUNDS, DEVICES = 12, 4
NOTHING_PROVED = run_account(load_scenario("paper"), {})
ENERGY = {"proposed": 0.2 + 2e-3 * np.arange(DEVICES), "max_power": 0.4 + 0.1 * np.arange(DEVICES)}


def results(schemes=("proposed", "max_power"), accuracy=((0.6,), (0.5,)), energy_scale=(1.0,)) -> xr.Dataset:
    """Energies as above, times a factor for each seed; accuracies that end as given, by scheme and seed."""
    seeds = len(accuracy[0])
    scale = np.resize(energy_scale, seeds)[:, None, None]
    energy = np.stack([np.broadcast_to(ENERGY[name] * scale, (seeds, ROUNDS, DEVICES)) for name in schemes])
    loss = np.broadcast_to(np.linspace(2.0, 1.0, ROUNDS)[:, None], energy.shape).copy()
    made = made_up_results(schemes, seeds=seeds, path_loss_db=[70.0, 80, 90, 95], loss=loss, energy_j=energy)
    rising = np.linspace(0.5, 1.0, ROUNDS) * np.array(accuracy)[..., None]
    return made.assign(test_accuracy=(DIMS[:3], rising))


def summary(made: xr.Dataset, states=(), account=NOTHING_PROVED) -> RunSummary:
    return summarise(made, account, states)


def shown(run: RunSummary) -> dict[str, tuple[str, ...]]:
    return {tile.name: (tile.value, *tile.notes) for tile in tiles(run)}


def test_one_seed_with_a_benchmark():
    mean, base_mean = ENERGY["proposed"].mean(), ENERGY["max_power"].mean()
    less = 100 * (1 - mean / base_mean)
    even = 100 * (1 - ENERGY["proposed"].std() / ENERGY["max_power"].std())
    assert verdict(summary(results())) == (
        "After 12 rounds with one seed, the proposed scheme reaches 60.0 % test accuracy (benchmark max_power: 50.0 "
        f"%; one seed cannot tell whether they differ), and its devices spend {less:.1f} % less energy than under "
        f"max_power, with {even:.1f} % less spread between them; no privacy guarantee is proved."
    )
    said = shown(summary(results()))
    assert said["Test accuracy"] == ("60.0 %", "one seed", "max_power: 50.0 %", "+10.0 points compared with max_power")
    assert said["Mean energy per device and round"] == (
        f"{1e3 * mean:.0f} mJ",
        "one seed",
        f"max_power: {1e3 * base_mean:.0f} mJ",
        f"-{less:.1f} % compared with max_power",
    )
    assert said["Rounds done"] == ("12 of 12", "max_power: 12 of 12")
    assert said["Proved privacy"][0] == "none proved"


def test_several_seeds_call_nothing_a_difference_that_their_interval_does_not_show():
    unclear = summary(results(accuracy=((0.60, 0.50, 0.55), (0.55, 0.54, 0.56))))
    assert "with 3 seeds, the proposed scheme reaches 55.0 %" in verdict(unclear)
    assert "(benchmark max_power: 55.0 %, no clear difference)" in verdict(unclear)
    clear = summary(results(accuracy=((0.60, 0.61, 0.62), (0.50, 0.51, 0.521)), energy_scale=(1.0, 1.1, 0.9)))
    assert "(benchmark max_power: 51.0 %, a clear difference)" in verdict(clear)
    low, high = re.search(r"([\d.]+) % to ([\d.]+) % \(3 seeds\)", " ".join(shown(clear)["Test accuracy"])).groups()
    assert 50.0 < float(low) < 61.0 < float(high) < 70.0
    assert "one seed" not in verdict(clear) + first_screen(clear, {}, ())


def test_one_scheme_alone():
    said = verdict(summary(results(("max_power",), ((0.5,),))))
    assert said.startswith("After 12 rounds with one seed, the scheme max_power reaches 50.0 % test accuracy, its")
    assert "550 mJ a round on average with a spread (std) of 112 mJ" in said
    assert "there is no other scheme in this run to compare it with" in said
    assert "nothing to compare with" in shown(summary(results(("max_power",), ((0.5,),))))["Test accuracy"]


def cut(made: xr.Dataset, scheme: int, after: int) -> xr.Dataset:
    for name in ("loss", "energy_j", "global_loss", "test_accuracy", "participating", "outage"):
        made[name] = made[name].astype(float)
        made[name][{"scheme": scheme, "round": slice(after, None)}] = np.nan
    return made


def test_an_interrupted_track_is_compared_over_the_rounds_that_both_have():
    states = [TrackState("proposed", 0, 12, 12), TrackState("max_power", 0, 4, 12)]
    made = cut(results(), 1, 4)
    run = summary(made, states)
    at_four = 100 * np.linspace(0.5, 1.0, ROUNDS)[3] * (0.6 - 0.5)
    assert verdict(run).startswith(
        "This run is not finished (proposed has done 12 of 12 rounds, max_power has done 4 of 12 rounds): so far, with "
        f"one seed, the proposed scheme reaches 60.0 % test accuracy (+{at_four:.1f} points compared with max_power "
        "over the first 4 rounds, which both have done; one seed cannot tell whether they differ), and"
    )
    assert shown(run)["Test accuracy"][2].endswith("over the first 4 rounds, which both have done")


def test_a_benchmark_that_has_not_begun():
    states = [TrackState("proposed", 0, 12, 12), TrackState("max_power", 0, 0, 12)]
    run = summary(results(("proposed",), ((0.6,),)), states)
    assert "max_power has not begun" in verdict(run) and "nothing to compare it with" in verdict(run)
    assert "max_power has not begun" in shown(run)["Test accuracy"]


def test_a_track_that_ended_for_a_reason_is_not_called_interrupted():
    states = [TrackState(name, 0, 12, 75, "no device has privacy budget left") for name in ("proposed", "max_power")]
    said = verdict(summary(results(), states))
    assert said.startswith("After 12 of 75 rounds with one seed, where it ended because no device has privacy budget")
    assert "not finished" not in said


def test_errors_of_models_that_predict_numbers():
    made = results().drop_vars("test_accuracy")
    errors = np.stack([np.linspace(4.0, 1.5, ROUNDS), np.linspace(4.0, 2.0, ROUNDS)])[:, None]
    run = summary(made.assign(test_accuracy=np.nan * made["global_loss"], test_rmse=(DIMS[:3], errors)))
    assert "predicts test data with an RMSE of 1.5 (-25.0 % compared with max_power; one seed" in verdict(run)
    assert shown(run)["Test RMSE"] == ("1.5", "one seed", "max_power: 2", "-25.0 % compared with max_power")


@pytest.mark.parametrize(("accuracy", "close"), [(0.11, True), (0.149, True), (0.16, False)])
def test_a_model_that_has_not_learned_is_told(accuracy, close):
    said = verdict(summary(results(accuracy=((accuracy,), (0.5,)))))
    assert ("close to guessing among 10 classes" in said) == close


def test_seeds_that_may_have_learned_nothing_are_told():
    said = verdict(summary(results(accuracy=((0.4, 0.1, 0.12), (0.5, 0.5, 0.5)))))
    assert "not clearly above guessing among 10 classes" in said


def test_differences_are_those_of_the_numbers_beside_them():
    run = summary(results(accuracy=((0.90249,), (0.90351,))))  # shown as 90.2 and 90.4
    assert "-0.2 points compared with max_power" in shown(run)["Test accuracy"]


def test_an_interval_without_width_is_told_as_such():
    said = shown(summary(results(accuracy=((0.6, 0.6, 0.6), (0.5, 0.5, 0.5)))))
    assert "the same with all 3 seeds" in said["Mean energy per device and round"]


def test_a_run_that_diverged_is_told():
    made = results()
    made["loss"][0, 0, 5:] = np.nan
    assert "has diverged" in verdict(summary(made)) and "has diverged" not in verdict(summary(results()))


def test_larger_costs_are_told_as_such():
    run = summary(results())
    swapped = dataclasses.replace(run.against, energy=dataclasses.replace(run.against.energy, mean=12.0))
    assert "spend 12.0 % more energy than under" in verdict(dataclasses.replace(run, against=swapped))
    swapped = dataclasses.replace(run.against, energy_std=dataclasses.replace(run.against.energy_std, mean=250.0))
    assert "with 3.5 times the spread between them" in verdict(dataclasses.replace(run, against=swapped))


def test_what_is_proved_is_the_worst_of_the_account():
    run = made_up("fair-mlp", schemes=("proposed",))
    account = run_account(run.scenario, run.ledgers)
    worst = max(one.epsilon for one in account.schemes[0].exposures)
    found = proved_epsilon(account, "proposed")
    assert found.epsilon == worst and f"epsilon {worst:.3f} at delta 1e-05 is proved for a record" in found.clause()
    assert proved_epsilon(account, "max_power").epsilon is None  # nothing of it is on the ledger


def test_noise_that_can_be_repeated_is_never_called_a_protection():
    seeded = ProvedEpsilon(1.5, 1e-5, "a record of a device", noisy=False, seeded=True)
    assert "this run's own noise protects nobody" in seeded.clause() and "protects nobody" in seeded.notes()[-1]
    run = summary(results())
    subject = dataclasses.replace(run.schemes[0], proved=seeded)
    titles = [tile.name for tile in tiles(dataclasses.replace(run, schemes=(subject, *run.schemes[1:])))]
    assert "Privacy with noise for deployment" in titles and "Proved privacy" not in titles
    deployed = dataclasses.replace(seeded, seeded=False)
    assert "protects nobody" not in deployed.clause() + " ".join(deployed.notes())


def test_noise_that_proves_nothing_is_nominal():
    run = made_up("paper", schemes=("proposed",))
    found = proved_epsilon(run_account(run.scenario, run.ledgers), "proposed")
    assert found.epsilon is None and found.clause().endswith(
        "since its noise assumes a sensitivity that nothing enforces"
    )
    assert found.brief() == "none proved"


def test_in_a_mode_that_trusts_the_access_point_its_own_view_does_not_count():
    """It hears every update without noise, which costs infinitely much; the public hears the noisy model."""
    run = made_up("fair-mlp", "privacy.mode=device", "privacy.noise_multiplier=2.7", "defences.use=[]")
    account = run_account(run.scenario, run.ledgers)
    costs = {one.audience: one.epsilon for one in account.schemes[0].exposures}
    found = proved_epsilon(account, "max_power")
    assert found.epsilon == costs["the public"] < np.inf == costs["access point"]
    assert "all data of a device" in found.clause()


def test_dates_are_words():
    assert date_text("2026-11-08T09:05:00+00:00") == "Begun on 8 November 2026 at 09:05 UTC. " and date_text("") == ""


def test_several_runs_together():
    runs = [
        RunReport(name, made, "", panels(made), NOTHING_PROVED)
        for name, made in (("a", results()), ("b", results(accuracy=((0.7,), (0.65,)))))
    ]
    sheet = joint_sheet(runs)
    assert sheet.heads == ["run", "scheme", "rounds", "seeds", "test accuracy (%)", *sheet.heads[5:]]
    assert [row[:5] for row in sheet.rows] == [
        ("a", "proposed", "12 of 12", "1", "60.0"),
        ("a", "max_power", "12 of 12", "1", "50.0"),
        ("b", "proposed", "12 of 12", "1", "70.0"),
        ("b", "max_power", "12 of 12", "1", "65.0"),
    ]
    loss = joint_panels(runs)[0]
    assert [line.label for line in loss.series] == ["a: proposed", "a: max_power", "b: proposed", "b: max_power"]
    said = joint_verdict(runs)
    assert "proposed of b has the highest test accuracy (70.0 %)" in said and "one seed in a, b" in said
    marked = panels(results())[0]
    assert marked.limits is not None and "the paper's axis" in marked.caption
    assert loss.limits is None and "the paper's axis" not in loss.caption  # what is not drawn is not explained
    short = cut(results(), 1, 4)
    for panel in joint_panels([runs[0], RunReport("b", short, "", panels(short), NOTHING_PROVED)]):
        assert [line.label for line in panel.series][2:] == ["b: proposed", "b: max_power (4 of 12 rounds)"]
