"""What every scheme in the registry must do."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import fairwave
from fairwave.engine.round_record import FROM_PLAN
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import RULES, SCHEMES
from fairwave.plugins import load_plugin
from fairwave.runs.order import fitting_schemes
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import SchemeSettings
from tests.builders import SMALL_MNIST, updates_of

BASE_STD = 0.01 * 5.09980


LATER = ("fedavgm", "fedyogi", "fedadagrad", "q_fedavg", "afl", "term", "rffl", "cffl", "iafl", "fedl")
"""Schemes that take the same ways through the engine as others do: looked at by the slow tests."""
FIRST = [name for name in SCHEMES.builtin_names() if name not in LATER]


def trained(names: list[str]) -> xr.Dataset:
    return fairwave.simulate(fairwave.load_scenario("small", SMALL_MNIST), names, seeds=[3], rounds=2).results.sel(
        seed=3
    )


@pytest.fixture(scope="module")
def results() -> xr.Dataset:
    return trained(FIRST)


def test_results_have_the_promised_shape(results):
    assert results.sizes == {"scheme": len(FIRST), "round": 2, "device": 3, "class": 10}
    check_numbers(results)


def check_numbers(results: xr.Dataset) -> None:
    promised = {"loss", "received_loss", "deviation", "noise_std", "outage", "global_loss", "test_accuracy", *FROM_PLAN}
    assert promised <= set(results.data_vars)
    assert all(np.isfinite(np.asarray(results[name], float)).all() for name in promised)


@pytest.mark.slow
def test_further_peers_conform_too():
    peers = trained(list(LATER))
    check_numbers(peers)
    for name in LATER:
        check_ranges(peers.sel(scheme=name))


@pytest.mark.parametrize("name", FIRST)
def test_limits_and_ranges(results, name):
    check_ranges(results.sel(scheme=name))


def check_ranges(one: xr.Dataset) -> None:
    assert ((one["deviation"] >= 0) & (one["deviation"] <= 1)).all()
    assert (one["transmit_power_w"] <= 1.0 + 1e-9).all()
    assert (one["local_iterations"] >= 10).all()
    np.testing.assert_allclose(one["energy_j"], one["compute_energy_j"] + one["transmit_energy_j"], rtol=1e-9)


PLANNED_BY = {"fair_energy_only": "proposed"} | {
    name: name for name in ("proposed", "amplifier_cap", "priced", "equal_energy", "least_energy", "fedl")
}
"""All others plan as the benchmark does."""


@pytest.mark.parametrize("name", SCHEMES.builtin_names())
def test_plans_come_from_the_rules(name):
    assert SCHEMES[name].plan is RULES[PLANNED_BY.get(name, "max_power")]


def test_schemes_that_plan_alike_meet_the_same_channels(results):
    for name in FROM_PLAN:
        expected = results[name].sel(scheme="max_power")
        for other in ("no_privacy", "fedavg", "fair_noise_only"):
            if name != "utility":  # which depends on what each device has learnt about its effort
                np.testing.assert_allclose(results[name].sel(scheme=other), expected, rtol=1e-12)


def test_noise_levels_are_what_the_scheme_says(results):
    std = results["noise_std"]
    assert (std.sel(scheme=["no_privacy", "fedavg"]) == 0).all()
    for name in ("max_power", "amplifier_cap", "priced", "equal_energy", "least_energy", "fair_energy_only"):
        np.testing.assert_allclose(std.sel(scheme=name), BASE_STD, rtol=1e-5)
    for name in ("proposed", "fair_noise_only"):
        expected = BASE_STD / (1 - 0.6 * results["deviation"].sel(scheme=name))
        np.testing.assert_allclose(std.sel(scheme=name), expected, rtol=1e-5)


@pytest.mark.parametrize("broadcast", [True, False])
def test_a_broadcast_is_one_copy_and_fair_copies_differ(broadcast):
    from fairwave.data import sources
    from fairwave.engine.cell import SimulatedCell
    from fairwave.learning.models import model_of

    scenario = fairwave.load_scenario("small", [*SMALL_MNIST, f"privacy.broadcast={str(broadcast).lower()}"])
    data = sources.load("mnist")
    for name, same in (("max_power", broadcast), ("proposed", False), ("no_privacy", True)):
        cell = SimulatedCell(scenario, SCHEMES[name], model_of(scenario.learning), data)
        state, _ = cell.round(cell.start(), 0)
        first = np.asarray(jax.tree.leaves(cell.copies(state))[1])
        assert (np.ptp(first, axis=0).max() == 0) == same


def test_adding_a_scheme_changes_no_other_and_twice_is_equal(results):
    scenario = fairwave.load_scenario("small", SMALL_MNIST)
    alone = fairwave.simulate(scenario, ["priced"], seeds=[3], rounds=2).results.sel(seed=3, scheme="priced")
    xr.testing.assert_identical(alone, results.sel(scheme="priced"))


def test_seeds_differ_and_targets_stop():
    scenario = fairwave.load_scenario("small", [*SMALL_MNIST, "run.target_loss=2.2"])
    two = fairwave.simulate(scenario, ["no_privacy"], seeds=[0, 1], rounds=40).results
    assert two.sizes["round"] < 40
    assert not np.allclose(two["energy_j"].sel(seed=0, round=1), two["energy_j"].sel(seed=1, round=1))
    last = two["loss"].mean("device").sel(seed=0, scheme="no_privacy").dropna("round").values
    assert last[-1] <= 2.2 < last[-2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schemes": ["propsed"]}, "did you mean 'proposed'?"),
        ({"schemes": []}, "at least one of each"),
        ({"seeds": [1, 1]}, "none twice"),
        ({"rounds": 0}, "at least one"),
    ],
)
def test_wrong_arguments(change, said):
    with pytest.raises(ArgumentError, match=said):
        fairwave.simulate("small", **change)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["privacy.mode=provable"], "clip_norm is unset"),
        (["learning.layer_sizes=[100, 10]"], "make them fit"),
        (["data.source=nowhere"], "no data set or file"),
    ],
)
def test_what_cannot_run_is_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        fairwave.simulate(fairwave.load_scenario("small", overrides), rounds=1)


@pytest.mark.parametrize("change", ["cell.participants=2", "cell.arrival_round=[1, 3, 1, 1]"])
def test_schemes_that_judge_by_every_round_want_all_devices(change):
    for name in ("rffl", "cffl"):
        with pytest.raises(ScenarioError, match="leaves some out"):
            fairwave.simulate(fairwave.load_scenario("small", [change]), [name], rounds=1)


LATE = ("cell.straggler_probability=0.5", "learning.late_rounds=2")


@pytest.mark.slow
def test_every_scheme_uses_late_updates_or_refuses_to():
    scenario = fairwave.load_scenario("small", [*SMALL_MNIST, *LATE])
    names = fitting_schemes(scenario)
    refused = {name for name in SCHEMES.builtin_names() if SCHEMES[name].reward is not None or SCHEMES[name].drift}
    assert (
        refused == set(SCHEMES.builtin_names()) - set(names) == {"cgsv", "rffl", "cffl", "iafl", "scaffold", "feddyn"}
    )
    for name in refused:
        with pytest.raises(ScenarioError, match=r"learning.late_rounds 2 uses what they sent before; leave the scheme"):
            fairwave.simulate(scenario, [name], rounds=1)
    results = fairwave.simulate(scenario, names, seeds=[0], rounds=4).results
    assert (results["late_age"] > 0).any(("seed", "round", "device")).all()
    for values in ("deviation", "global_loss", "test_accuracy", "late_weight"):
        assert np.isfinite(results[values]).all()
    weight = np.where(results["late_age"] > 0, (1.0 + results["late_age"]) ** -0.5, 0.0)
    np.testing.assert_allclose(results["late_weight"], weight, rtol=1e-12)


def test_the_tutorials_scheme_works_as_a_plugin(tmp_path):
    """The code in the documentation is the code that runs here, from a file outside the package."""
    text = (Path(__file__).parents[2] / "docs" / "schemes.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code.splitlines()) < 40
    (tmp_path / "median.py").write_text(code)
    load_plugin(tmp_path / "median.py")
    rows = np.random.default_rng(0).normal(size=(4, 9))
    used = np.array([True, True, False, True])
    step, _ = SCHEMES["median"].combine(SchemeSettings(Peers(), 0.1), updates_of(rows, used), ())
    np.testing.assert_allclose(step, np.median(rows[used], axis=0), rtol=1e-6)
    learnt = fairwave.simulate(fairwave.load_scenario("small", SMALL_MNIST), ["median"], rounds=2).results
    assert learnt["global_loss"][0, 0, -1] < 2.31


def test_the_documentation_names_every_scheme():
    text = (Path(__file__).parents[2] / "docs" / "schemes.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in SCHEMES.builtin_names())
