"""The paper beside a run: which benchmark gives which headline, statements, axes and ways of averaging."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from fairwave.metrics.published import STATEMENTS
from fairwave.report.averaging import energy_spreads, loss_gaps, loss_spreads
from fairwave.report.figure_data import panels
from fairwave.report.headline_notes import deep_fades
from fairwave.report.headlines import headlines, verdict
from fairwave.report.paper_section import paper_section, paper_sheets
from fairwave.report.paper_setting import is_beside_paper
from fairwave.report.privacy_account import run_account
from fairwave.report.section import RunReport, parts
from fairwave.report.tables import Sheet, pieces_html, sheet_markdown
from fairwave.scenario.loading import load_scenario
from tests.made_up_results import made_up_results

SCHEMES, SEEDS, ROUNDS, DEVICES = ["proposed", "alike", "costly"], 3, 60, 4
PLACES = np.linspace(-1.0, 1.0, DEVICES)


@pytest.fixture
def results() -> xr.Dataset:
    """Against `alike`, all is as the paper states; `costly` spends twice as much, so that mean energy is missed.

    Losses of `proposed` are 6.26 % above both; its std across devices is 0.103 in every round.
    """
    shape = (3, SEEDS, ROUNDS, DEVICES)
    spread = PLACES / PLACES.std()
    energy = np.empty(shape)
    energy[0] = 0.25 + 0.0004 * spread
    energy[1] = 0.25 / 0.8783 + 0.04 * spread
    energy[2] = 0.50 + 0.04 * spread
    falling = np.linspace(2.3, 0.5, ROUNDS)[:, None] * np.array([1.0, 0.99, 1.01])[:, None, None]
    loss = np.broadcast_to(falling, shape).copy()
    loss[0] *= 1.0626
    loss += 0.103 * spread
    return made_up_results(
        SCHEMES,
        seeds=SEEDS,
        path_loss_db=[70.0, 80, 90, 95],
        loss=loss,
        energy_j=energy,
        uplink_rate_bps=np.array([5.5e6, 5.4e6, 5.6e6])[:, None, None, None] - 1e6 * np.arange(DEVICES),
    )


def sheet(results: xr.Dataset, key: str) -> Sheet:
    return next(each for each in paper_sheets(results) if each.key == key)


def row(found: Sheet, name: str) -> dict[str, str]:
    return dict(zip(found.heads, next(each for each in found.rows if each[0] == name), strict=True))


def test_the_sentences_name_the_benchmark_that_gives_all_and_what_the_other_misses(results):
    said = verdict(headlines(results))
    assert said == [
        "The comparison with alike gives all headlines of the paper.",
        "The comparison with costly misses mean device energy (paper -12.17 %, here -50.00 %).",
    ]
    table = sheet(results, "headlines")
    assert row(table, "alike")["missed"] == "" and row(table, "costly")["missed"] == "mean device energy"
    assert row(table, "the paper")["mean training loss"] == "+6.26 %"
    assert row(table, "costly")["mean training loss"].startswith("+6.26 %")
    shown = pieces_html(paper_section(results))
    assert all(f"<li>{sentence}</li>" in shown for sentence in said)


def test_no_benchmark_gives_all_if_the_schemes_own_headline_is_missed(results):
    results["loss"][0] = results["loss"][0].mean("device")
    assert verdict(headlines(results)) == [
        "No single benchmark gives all headlines of the paper.",
        "The comparison with costly misses mean device energy (paper -12.17 %, here -50.00 %).",
        "The comparison with alike gives all headlines that compare schemes.",
        "With every benchmark, proposed misses std of training loss across devices (paper 0.103, here 0.000).",
    ]


def test_a_headline_is_given_if_one_way_of_averaging_gives_it(results):
    """The gap is in the last shown round alone; the mean over rounds is far from the paper's."""
    results["loss"][0] = results["loss"][1]
    results["loss"][0, :, 49] *= 1.0626
    said = verdict(headlines(results))
    assert said[0] == "The comparison with alike gives all headlines of the paper."
    only = (
        "The mean training loss against alike comes near the paper's value when it is taken as round 50 (+6.26 %). As"
    )
    assert any(sentence.startswith(only) for sentence in said)
    results["loss"][0, :, 49] *= 1.2
    assert "mean training loss" in verdict(headlines(results))[1]


def test_what_has_no_value_gives_no_headline(results):
    results["energy_j"][:] = np.nan
    for name in ("compute_energy_j", "transmit_energy_j"):
        results[name][:] = np.nan
    assert verdict(headlines(results))[0].startswith("Not all of the paper's headlines have a value in this run")
    cells = row(sheet(results, "statements"), STATEMENTS[0].text)
    assert cells["alike"] == "no value" and row(sheet(results, "axes"), "Figure 2: total energy (mJ)")["alike"] == (
        "no value"
    )
    assert row(sheet(results, "headlines"), "alike")["mean device energy"] == "no value" and not deep_fades(results)


def test_a_run_without_the_proposed_scheme_is_not_compared(results):
    without = results.sel(scheme=["alike", "costly"])
    assert paper_section(without) == [] and not is_beside_paper(without)


@pytest.mark.parametrize(
    ("preset", "rounds", "overrides", "compared"),
    [
        ("paper", 10, (), True),
        ("paper", 9, (), False),
        ("paper-clean", 10, ("utility.iteration_price_j=0.07 J",), True),
        ("paper", 10, ("cell.num_devices=20",), False),
        ("paper", 10, ("data.source=fashion-mnist",), False),
        ("fair", 60, (), False),
        ("small", 60, (), False),
    ],
)
def test_only_runs_of_the_papers_setting_with_ten_rounds_are_held_against_it(
    results, preset, rounds, overrides, compared
):
    described = load_scenario(preset, overrides).model_dump_json()
    run = results.isel(round=slice(rounds)).assign_attrs(scenario=described)
    assert is_beside_paper(run) == compared
    keys = [part.key for part in parts(RunReport("a", run, "", [], run_account(load_scenario(preset), {})), 1)]
    assert ("run-1-paper" in keys) == compared


def test_the_proposed_scheme_alone_has_no_gaps_and_no_statements(results):
    assert [each.key for each in paper_sheets(results.sel(scheme=["proposed"]))] == [
        "headlines",
        "spreads",
        "axes",
        "values",
    ]


def test_gaps_in_each_way_are_those_of_plain_loops(results):
    results["loss"] *= 1.0 + 0.1 * np.random.default_rng(5).random(results["loss"].shape)
    losses, energies = results["loss"].values[:, :, :50], results["energy_j"].values
    expected = {"ratio_of_means": [], "mean_of_gaps": [], "last_round": []}
    for seed in range(SEEDS):
        ours, base = losses[0, seed].mean(axis=1), losses[1, seed].mean(axis=1)
        expected["ratio_of_means"].append(sum(ours) / sum(base))
        expected["mean_of_gaps"].append(sum(a / b for a, b in zip(ours, base, strict=True)) / 50)
        expected["last_round"].append(ours[49] / base[49])
    found = loss_gaps(results, "alike")
    assert set(found) == set(expected)
    for how, gaps in expected.items():
        logs = np.log(gaps)
        low, high = scipy.stats.t.interval(0.95, SEEDS - 1, logs.mean(), scipy.stats.sem(logs))
        assert found[how].mean == pytest.approx(100 * np.expm1(logs.mean()))
        assert (found[how].low, found[how].high) == (
            pytest.approx(100 * np.expm1(low)),
            pytest.approx(100 * np.expm1(high)),
        )
    spreads = [losses[0, seed].std(axis=1) for seed in range(SEEDS)]
    means = {how: each.mean for how, each in loss_spreads(results, "proposed").items()}
    assert means["mean"] == pytest.approx(np.mean(spreads))
    assert means["peak"] == pytest.approx(np.mean([max(each) for each in spreads]))
    assert means["last_round"] == pytest.approx(np.mean([each[-1] for each in spreads]))
    ratio = energies[0, 0].std(axis=1).mean() / energies[2, 0].std(axis=1).mean()
    assert energy_spreads(results, "costly")["mean_of_rounds"].mean == pytest.approx(100 * (ratio - 1))


def test_the_table_of_gaps_has_all_ways_and_the_last_round_shown(results):
    found = row(sheet(results, "gaps"), "alike")
    assert found["loss: round 50"].startswith("+6.26 %")
    short = row(sheet(results.isel(round=slice(20)), "gaps"), "alike")
    assert "loss: round 20" in short and "loss: round 50" not in short
    assert row(sheet(results, "spreads"), "proposed")["peak"].startswith("0.103")


def test_statements_are_told_for_every_benchmark(results):
    found = sheet(results, "statements")
    near = next(each.text for each in STATEMENTS if each.name == "near devices send faster")
    assert row(found, near) == {
        "the paper's statement": near,
        "alike": "yes (mean of seeds; 3 of 3 alone): proposed 5.500 Mbit/s, benchmark 5.400 Mbit/s",
        "costly": "no (mean of seeds; 0 of 3 alone): proposed 5.500 Mbit/s, benchmark 5.600 Mbit/s",
    }
    assert len(found.rows) == len(STATEMENTS) + 1
    spread = found.rows[-1]
    assert (
        "std of the loss" in spread[0]
        and spread[1] == "yes (mean of seeds; 3 of 3 alone): proposed 0.103, benchmark 0.103"
    )
    results["loss"][0, 0] *= 3.0
    one = sheet(results, "statements").rows[-1][1]
    assert one == "no (mean of seeds; 2 of 3 alone): proposed 0.172, benchmark 0.103"


def test_devices_are_taken_in_the_order_of_their_path_loss(results):
    """The same devices, numbered the other way round: nothing that is said of curves may change."""
    turned = results.isel(device=slice(None, None, -1)).assign_coords(device=results["device"].values)
    for key in ("statements", "axes", "values"):
        assert sheet(turned, key).rows == sheet(results, key).rows
    normalised = [panels(each, "normalised")[1].series[1].y for each in (results, turned)]
    assert normalised[0] == pytest.approx(normalised[1])


def test_the_part_of_a_curve_outside_the_papers_axis_is_told(results):
    found = row(sheet(results, "axes"), "Figure 2: total energy (mJ)")
    top, low = (500 + sign * 40 * 1.0 / PLACES.std() for sign in (1, -1))
    assert found["the paper's axis"] == "175 to 375"
    assert found["costly"] == f"{low:.1f} to {top:.1f}; {(top - 375) / 2:.1f} % outside"
    assert found["alike"].count("outside") == 0
    assert row(sheet(results, "axes"), "Figure 1: training loss")["alike"].startswith("0.805 to 2.300")


def test_all_that_the_paper_publishes_stands_beside_ours(results):
    found = sheet(results, "values")
    assert "does not include the data files" in found.caption
    assert len(found.rows) == 2 * 6 + 4
    near = row(found, "Figure 4b: uplink rate (Mbit/s), nearest device")
    far = row(found, "Figure 4b: uplink rate (Mbit/s), farthest device")
    assert (near["costly"], far["costly"]) == ("5.600 ± 0.000", "2.600 ± 0.000")
    assert near["the paper"] == "on an axis 3.5 to 5.75"
    energy = row(found, "mean device energy")
    assert energy["the paper"] == "-12.17 %" and energy["proposed"] == "" and energy["costly"].startswith("-50.00 %")
    assert row(found, "std of training loss across devices")["proposed"].startswith("0.103")


def test_one_costly_round_is_told_with_what_it_adds(results):
    results["energy_j"][0, :, 10, 3] += 0.3
    results["energy_j"][0, 0, 10, 3] += 0.3
    results["energy_j"][0, :, 20, 3] -= 0.1  # one cheap round is no reason
    assert "by at most 5.0 mJ in one seed and 10.0 mJ in another." in deep_fades(results)[0]
    assert "by at most 10.0 mJ." in deep_fades(results.isel(seed=[0]))[0]


def test_the_normalised_axis_is_the_papers(results):
    """The paper draws the device of index x at x / 9 - 10 / 9 + 1, for ten devices."""
    ten = results.isel(device=[0, 1, 2, 3] * 2 + [0, 1]).assign_coords(device=np.arange(10))
    ten["path_loss_db"] = ten["path_loss_db"] * 0 + 70.0 + 3.0 * np.arange(10) ** 0.5 + ten["seed"]
    panel = panels(ten, "normalised")[1]
    index = np.arange(1, 11)
    assert panel.series[0].x == pytest.approx(index / 9 - 10 / 9 + 1)
    assert panel.x_label == "normalised path loss of devices" and panel.joined and panel.series[0].spread is not None
    plain = panels(ten)[1]
    assert plain.x_label == "path loss (dB)" and plain.series[0].x.max() > 70 and not plain.joined
    assert panels(ten.isel(device=[0]), "normalised")[1].series[0].x.tolist() == [0.0]


def test_figures_mark_the_papers_axis_where_a_curve_lies_on_it(results):
    by_key = {panel.key: panel for panel in panels(results)}
    energy = by_key["figure-2"].limits
    assert energy is not None and (energy.low, energy.high, energy.start, energy.end) == (175.0, 375.0, 70.0, 95.0)
    loss = by_key["figure-1"].limits
    assert loss is not None and (loss.low, loss.high, loss.end) == (0.4, 2.4, 50.0)
    assert "Dashed lines" in by_key["figure-2"].caption and by_key["accuracy"].limits is None
    results["energy_j"] *= 100.0
    away = {panel.key: panel for panel in panels(results)}["figure-2"]
    assert away.limits is None and "Dashed" not in away.caption


def test_a_sheet_as_markdown():
    assert sheet_markdown(Sheet("a", "b", "c", ("x", "y"), [("1", "2")])) == "| x | y |\n| --- | --- |\n| 1 | 2 |\n"
