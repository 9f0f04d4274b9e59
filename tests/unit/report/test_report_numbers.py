"""The report's numbers, on results whose answers are known."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
import scipy.special
import scipy.stats
import xarray as xr

from fairwave.metrics.intervals import Interval, change_interval, interval
from fairwave.privacy.ledger import event
from fairwave.report.figure_data import Panel, Series, panels
from fairwave.report.headlines import headlines
from fairwave.report.interactive_figures import panel_html
from fairwave.report.page import conclusions, write_report
from fairwave.report.privacy_account import run_account
from fairwave.report.privacy_section import privacy_section
from fairwave.report.section import RunReport, opening, parts, section
from fairwave.report.statistics import (
    evaluated,
    fairness_over_seeds,
    last_value,
    loss_spread,
    mean_loss,
    mean_over_rounds,
    milestones,
)
from fairwave.report.style import with_interval
from fairwave.report.tables import pieces_html
from fairwave.scenario.loading import load_scenario
from tests.made_up_results import made_up_results
from tests.statements import made_up

ACCOUNT = run_account(load_scenario("paper"), {})
SCHEMES, SEEDS, ROUNDS, DEVICES = ["proposed", "max_power", "priced"], [0, 1, 2], 60, 4


@pytest.fixture
def results() -> xr.Dataset:
    """Energies 0.2 for proposed, 0.2 + 0.1 k for the others; losses of proposed 5 % above."""
    shape = (len(SCHEMES), len(SEEDS), ROUNDS, DEVICES)
    energy = np.full(shape, 0.2)
    energy[1:] += 0.1 * np.arange(DEVICES)
    energy[0] += 1e-4 * np.arange(DEVICES)
    loss = (
        np.broadcast_to(2.0 / np.arange(1, ROUNDS + 1)[:, None], shape)
        * np.array([1.05, 1.0, 1.0])[:, None, None, None]
    )
    return made_up_results(
        SCHEMES,
        seeds=len(SEEDS),
        path_loss_db=[70.0, 80, 90, 95],
        loss=loss * (1 + 0.01 * np.arange(DEVICES)),
        energy_j=energy,
    )


def test_interval_agrees_with_scipy():
    values = np.random.default_rng(1).normal(size=7)
    low, high = scipy.stats.t.interval(0.95, 6, values.mean(), scipy.stats.sem(values))
    ours = interval([*values, np.nan])
    assert (ours.low, ours.high, ours.count) == (pytest.approx(low), pytest.approx(high), 7)
    assert math.isnan(interval([3.0]).low) and interval([]).count == 0


def test_changes_are_intervals_of_the_log_ratio():
    ours = change_interval([1.0, 2.0, 3.0], [2.0, 5.0, 5.0])
    logs = np.log([0.5, 0.4, 0.6])
    low, high = scipy.stats.t.interval(0.95, 2, logs.mean(), scipy.stats.sem(logs))
    assert (ours.low, ours.high) == (pytest.approx(100 * np.expm1(low)), pytest.approx(100 * np.expm1(high)))
    assert ours.mean == pytest.approx(100 * ((0.5 * 0.4 * 0.6) ** (1 / 3) - 1))
    assert change_interval([1e-6, 1e-2], [1.0, 1.0]).low >= -100


def test_intervals_stay_where_values_can_lie():
    """Beside Student's interval on the logarithm, or the log-odds, of the mean, with its delta-method error."""
    shares, spreads = np.array([0.97, 0.999, 0.9]), np.array([0.1, 3.0, 0.2])
    for values, least, most in ((shares, 0.0, 1.0), (spreads, 0.0, np.inf)):
        plain, ours = interval(values), interval(values, least, most)
        assert (plain.low < least or plain.high > most) and least < ours.low < ours.mean < ours.high < most
        mean, error = values.mean(), scipy.stats.sem(values)
        slope = 1 / mean if np.isinf(most) else 1 / (mean * (1 - mean))
        scale = np.log if np.isinf(most) else scipy.special.logit
        for end, expected in zip((ours.low, ours.high), scipy.stats.t.interval(0.95, 2), strict=True):
            assert scale(end) == pytest.approx(scale(mean) + expected * error * slope)
    assert interval([1.0, 1.0], 0.0, 1.0) == Interval(1.0, 1.0, 1.0, 2)
    small = np.random.default_rng(3).normal(10.0, 0.01, 6)
    assert (interval(small, 0.0).low, interval(small, 0.0).high) == pytest.approx(
        (interval(small).low, interval(small).high), rel=1e-5
    )


@pytest.mark.statistical
def test_intervals_cover_the_mean_as_often_as_they_say():
    """Fixed key. 20,000 intervals: 95 % +- 0.15 % cover; 5 sigma, false alarm below 1e-6. A normal quantile (1.96 for
    4 values) would cover 85.6 %, far outside."""
    draws = np.random.default_rng(2).normal(size=(20_000, 4))
    covered = np.mean([(i := interval(row)).low <= 0.0 <= i.high for row in draws])
    assert abs(covered - 0.95) < 5 * 0.00155
    narrow = np.mean([abs(row.mean()) <= 1.96 * row.std(ddof=1) / 2 for row in draws])
    assert abs(narrow - 0.95) > 5 * 0.00155


def test_headlines(results):
    said = {claim.claim: claim.measured.mean for claim in headlines(results)}
    spread = np.std(np.arange(DEVICES))
    assert said["std of device energy against max_power"] == pytest.approx(100 * (1e-4 * spread / (0.1 * spread) - 1))
    assert said["mean device energy against priced"] == pytest.approx(100 * ((0.2 + 1.5e-4) / 0.35 - 1))
    assert said["mean training loss against max_power"] == pytest.approx(5.0)
    first = 1.05 * 2.0 * np.mean(1 / np.arange(1, 51)) * 0.01 * spread
    assert said["std of training loss across devices"] == pytest.approx(first)
    assert headlines(results.sel(scheme=["max_power"])) == []


def test_schemes_are_compared_over_the_rounds_that_both_have(results):
    """max_power stopped after 20 rounds in one seed: later, lower losses of proposed must not count against it."""
    short = {"scheme": 1, "seed": 0, "round": slice(20, None)}
    for name in ("loss", "energy_j", "global_loss", "test_accuracy", "participating", "outage"):
        results[name] = results[name].astype(float)
        results[name][short] = np.nan
    said = {claim.claim: claim.measured.mean for claim in headlines(results)}
    assert said["mean training loss against max_power"] == pytest.approx(5.0)
    page = opening(short_run := RunReport("a", results, "", [], ACCOUNT)) + section(parts(short_run, 1))
    assert "This run is not finished" in page and "max_power has done 20 to 60 of 60 rounds" in page
    assert page.count("max_power (seed 0: 20, of 60 rounds)") >= 4  # in every table


def test_what_was_evaluated_is_told_until_the_next_time_and_no_longer(results):
    accuracy = results["test_accuracy"]
    rounds = accuracy.sizes["round"]
    known = np.arange(1, rounds + 1) % 3 == 0
    results["test_accuracy"] = accuracy.where(xr.DataArray(known, dims="round"))
    results.attrs["scenario"] = json.dumps({"run": {"evaluate_every": 3}})
    told = evaluated(results, "test_accuracy").transpose("round", ...).values
    expected = accuracy.transpose("round", ...).values
    for place in range(rounds):
        last = (place + 1) // 3 * 3 - 1
        assert np.isnan(told[place]).all() if last < 0 else (told[place] == expected[last]).all()


def test_a_diverged_participant_is_not_hidden_and_an_absent_one_does_not_count(results):
    results["loss"][0, 0, 5, 1] = np.nan
    results["participating"][0, 1, 5, 1] = False
    results["loss"][0, 1, 5, 1] = np.nan
    means = mean_loss(results).sel(scheme="proposed", round=6)
    assert np.isnan(means[0]) and means[1] == pytest.approx(float(results["loss"][0, 1, 5, [0, 2, 3]].mean()))
    results["participating"][0, 0, 7, 1:] = False
    assert np.isnan(loss_spread(results).sel(scheme="proposed", seed=0, round=8))


def test_outages_and_absence_are_left_out_of_mean_energy(results):
    results["outage"][0, 0, :30, 0] = True
    results["energy_j"][0, 0, :30, 0] = 0.0
    results["participating"][0, 0, :10, 1] = False
    results["energy_j"][0, 0, :10, 1] = 0.0
    assert mean_over_rounds(results, "energy_j").sel(scheme="proposed", seed=0).values[:2] == pytest.approx(
        [0.2, 0.2001]
    )


def test_tables(results):
    assert milestones(results) == [1, 10, 30, 50, 60] and milestones(results.isel(round=slice(7))) == [1, 7]
    assert fairness_over_seeds(results, "max_power")["mean"].mean == pytest.approx(0.35)
    results["test_accuracy"][0, 0, 40:] = np.nan  # one seed reached its target
    last = results["test_accuracy"].sel(scheme="proposed")
    assert last_value(results["test_accuracy"], "proposed").mean == pytest.approx(
        np.mean([last[0, 39], last[1, 59], last[2, 59]])
    )


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (Interval(0.4541, 0.4418, 0.4664, 5), {}, "0.454 ± 0.012"),
        (Interval(0.97, 0.91, 0.99, 5), {"digits": 2}, "0.97 (0.91 to 0.99)"),
        (Interval(0.4541, math.nan, math.nan, 1), {}, "0.454"),
        (Interval(5.43, 5.2, 5.7, 5), {"digits": 1, "unit": " %"}, "+5.4 % (+5.2 to +5.7)"),
        (Interval(-5.43, math.nan, math.nan, 1), {"digits": 1, "unit": " %"}, "-5.4 %"),
        (Interval(math.nan, math.nan, math.nan, 0), {}, "no value"),
    ],
)
def test_numbers_are_written_as_people_read_them(value, options, text):
    assert with_interval(value, **options) == text


def test_panels_hold_the_papers_figures(results):
    found = {panel.key: panel for panel in panels(results)}
    assert list(found) == ["figure-1", "figure-2", "figure-3a", "figure-3b", "figure-4a", "figure-4b", "accuracy"]
    energy = found["figure-2"].series[1]
    assert energy.y == pytest.approx([200, 300, 400, 500]) and energy.x.tolist() == [70, 80, 90, 95]
    assert found["figure-2"].joined
    elsewhere = results.assign(path_loss_db=results["path_loss_db"] + results["seed"])
    scattered = {panel.key: panel for panel in panels(elsewhere)}["figure-2"]
    assert scattered.series[0].x.size == 12 and not scattered.joined and (np.diff(scattered.series[0].x) >= 0).all()


def test_the_page_is_self_contained_and_escapes_what_it_quotes(results, tmp_path):
    runs = [
        RunReport("one", results, "a = '<script>'", panels(results), ACCOUNT),
        RunReport("two", results, "", panels(results), ACCOUNT),
    ]
    page = write_report(runs, tmp_path).read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # plotly itself names its home page
    assert not re.search(r"""src=["']|url\(|@import""", own)
    links = re.findall(r'href="([^"]+)"', own)
    assert links and all(link.startswith("#") or (tmp_path / link).is_file() for link in links)
    assert len(page) < 1_500_000
    assert "<b>x</b>" not in own and "&lt;b&gt;x&lt;/b&gt;" in own and "a = '<script>'" not in own
    assert own.count("<h3>Headlines: the proposed scheme</h3>") == own.count("<h3>Loss spread") == 2
    ids = re.findall(r'\bid="([^"]+)"', own)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]+)"', own)) <= set(ids)
    assert own.count('role="img" aria-label="') == 3 * len(runs[0].panels)
    for name in ("one", "two"):
        assert {path.name for path in (tmp_path / "figures" / name).iterdir()} == {
            f"{panel.key}.{form}" for panel in runs[0].panels for form in ("svg", "pdf", "csv")
        }


@pytest.mark.parametrize(
    ("rounds", "step"), [(1, 1), (3, 1), (8, 1), (9, 2), (10, 2), (17, 5), (60, 10), (200, 50), (300, 50), (1000, 200)]
)
def test_ticks_of_rounds_are_whole_and_few(rounds, step):
    line = Series("a", np.arange(1, rounds + 1), np.linspace(2.0, 1.0, rounds))
    panel = Panel("loss", "Loss", "communication round", "loss", "", [line])
    assert f'"tick0":0,"dtick":{float(step)}' in panel_html(panel, "")
    assert rounds / step <= 8
    assert "dtick" not in panel_html(dataclasses.replace(panel, over_rounds=False), "")


def test_conclusions_speak_of_seeds(results):
    many = conclusions([RunReport("a", results, "", [], ACCOUNT)])
    one = conclusions([RunReport("a", results.isel(seed=[0]), "", [], ACCOUNT)])
    assert "3 seeds" in many[1] and one[1].startswith("One seed shows")
    assert any("may not quote a privacy guarantee" in line for line in one)


def test_the_page_counts_unfinished_tries_and_all_seeds_together(results):
    """Device 3 was asked in round 4 with one seed, for more steps than it ever made."""
    run = made_up("fair-mlp", schemes=("proposed",), seeds=(0, 1))
    asked = event("update", "device", np.array([3]), 1.3, 1.0, steps=4_000, sampling=16 / 600)
    more = run_account(run.scenario, run.ledgers, {("proposed", 1): [(3, asked)]})
    pages = [pieces_html(privacy_section(each, results)) for each in (run_account(run.scenario, run.ledgers), more)]
    said = "proposed with seed 1: asked in round 4, not concluded: counted at its worst."
    assert said in pages[1] and said not in pages[0]
    assert more.together is not None and more.together.epsilon > more.schemes[0].exposures[0].epsilon
    for number in (more.together.epsilon, more.schemes[0].exposures[0].epsilon):
        assert f"{number:.3f}" in pages[1] and f"{number:.3f}" not in pages[0]
    assert "everything in this folder, published together" in pages[0]
