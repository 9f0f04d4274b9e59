"""What somebody sees in a notebook or at a prompt: short forms, units, a progress bar, and examples that run."""

from __future__ import annotations

import doctest
import html.parser
import importlib
import io
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave.metrics.variables import AXES, MEASURED, PLANNED
from fairwave.privacy.disclosure import RESULTS
from fairwave.runs.progress_bar import ProgressBar
from fairwave.trackers.callback import RoundValues, Training
from tests.builders import SOFTMAX_MNIST

SCENARIO = fairwave.load_scenario("small", SOFTMAX_MNIST)
ROOT = Path(__file__).parents[3]


class Balanced(html.parser.HTMLParser):
    """Raises where a tag is closed that is not the last one open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


@pytest.fixture(scope="module")
def simulation() -> fairwave.Simulation:
    return fairwave.simulate(SCENARIO, ["proposed", "max_power"], rounds=2)


def test_a_simulation_is_a_line_and_a_table(simulation: fairwave.Simulation):
    assert repr(simulation) == "<Simulation: proposed, max_power; seeds 0; 2 rounds; 3 devices>"
    shown = Balanced(simulation._repr_html_()).text
    last = simulation.results.isel(round=-1, seed=0)
    for scheme in ("proposed", "max_power"):
        energy = 1e3 * float(simulation.results["energy_j"].sel(scheme=scheme).mean())
        loss, accuracy = float(last["loss"].sel(scheme=scheme).mean()), float(last["test_accuracy"].sel(scheme=scheme))
        assert f"{scheme} 2 {loss:.3f} {accuracy:.3f} {energy:.1f}" in shown
    assert 'source = "mnist"' in shown


def test_a_scenario_is_a_line_and_all_parameters_behind_a_click():
    scenario = fairwave.load_scenario("paper")
    line = "<Scenario: 10 devices; 200 rounds; mnist; mlp 784 x 128 x 64 x 10; privacy mode 'paper'>"
    assert repr(scenario) == str(scenario) == line
    assert "<details>" in scenario._repr_html_() and "path_loss_exponent" in Balanced(scenario._repr_html_()).text


def test_a_run_is_a_line_and_a_table(tmp_path: Path):
    shutil.copy(ROOT / "tests" / "data" / "run-format-7.sqlite", tmp_path / "run.sqlite")
    with fairwave.open_run(tmp_path) as run:
        assert repr(run) == f"<Run in {tmp_path}: proposed; seeds 7; 5 rounds; done>"  # reached its target early
        accuracy = float(run.results["test_accuracy"].values[0, 0, -1])
        assert f"{accuracy:.3f}" in Balanced(run._repr_html_()).text


def test_every_variable_of_results_has_units_and_a_name(simulation: fairwave.Simulation):
    assert set(RESULTS) <= set(AXES) | set(MEASURED) | set(PLANNED)  # all that any run may have
    for name, variable in simulation.results.variables.items():
        if name != "class":
            assert variable.attrs["long_name"] and variable.attrs["units"], name
    assert simulation.results["energy_j"].attrs == {"units": "J", "long_name": "energy of a round"}
    assert simulation.results["findings"].attrs.keys() == {"units", "long_name", "flag_masks", "flag_meanings"}


def test_every_variable_of_plans_has_units_and_a_name_also_in_netcdf_where_times_stay_numbers(tmp_path: Path):
    import xarray as xr

    more = ["learning.smoothness=10", "learning.strong_convexity=0.1", "compute.battery_capacity_j=9e3"]
    scenario = fairwave.load_scenario("small", [*more, "radio.max_transmit_power_w=[1e-9, 0.1, 0.1, 0.1]"])
    planned = fairwave.plan(scenario, "proposed", draws=3)
    assert {"reason", "battery_life_rounds", "local_accuracy", "case_fraction"} <= set(planned)
    for name, variable in planned.variables.items():
        assert variable.attrs["long_name"] and variable.attrs["units"], name
    planned.to_netcdf(tmp_path / "p.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "p.nc") as read:
        assert read["upload_time_s"].attrs["units"] == "s" and read["upload_time_s"].dtype == np.float64


def test_units_follow_from_names():
    """The suffix of a name is its unit, so that no row can say another."""
    suffixes = {"_j": "J", "_s": "s", "_m": "m", "_w": "W", "_bps": "bit/s", "_db": "dB", "_bytes": "byte"}
    for name, (units, _) in {**AXES, **MEASURED, **PLANNED}.items():
        expected = next((unit for suffix, unit in suffixes.items() if name.endswith(suffix)), "1")
        assert units == expected or name in ("test_rmse", "distance_now_m"), name


@pytest.mark.parametrize(
    ("terminal", "wanted", "shown"), [(True, None, True), (False, None, False), (True, False, False)]
)
def test_a_bar_is_shown_where_somebody_looks(monkeypatch: pytest.MonkeyPatch, terminal, wanted, shown):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    training = Training("proposed", 3, 2, 0, SCENARIO)
    with ProgressBar(4, wanted) as bar:
        bar.take(training, RoundValues(1, {"test_accuracy": 0.51234}))
        bar.skip(1)
    said = stream.getvalue()
    assert bool(said) == shown
    if shown:
        assert "proposed, seed 3" in said and "test accuracy=0.512" in said and "1/3" in said


def test_a_notebook_is_recognised(monkeypatch: pytest.MonkeyPatch):
    from fairwave.runs.progress_bar import _somebody_looks

    class ZMQInteractiveShell:
        pass

    assert not _somebody_looks()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=ZMQInteractiveShell))
    assert _somebody_looks()


@pytest.mark.parametrize(
    "module", ["runs.simulate", "planner.plan", "scenario.loading", "runs.open_run", "extensions", "trackers.callback"]
)
def test_examples_in_docstrings_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "runs" / "paper").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "data" / "run-format-7.sqlite", tmp_path / "runs" / "paper" / "run.sqlite")
    monkeypatch.chdir(tmp_path)
    names = {"fairwave": fairwave, "load_scenario": fairwave.load_scenario}
    done = doctest.testmod(importlib.import_module(f"fairwave.{module}"), extraglobs=names)
    assert done.attempted > 0 and done.failed == 0


def test_public_functions_say_what_they_take_and_return():
    for function in (fairwave.simulate, fairwave.plan, fairwave.load_scenario, fairwave.open_run, fairwave.add):
        said = function.__doc__ or ""
        assert "Args:" in said and "Example:" in said, function.__name__
        for name in function.__annotations__.keys() - {"return"}:
            assert f"{name}:" in said, (function.__name__, name)
        assert ("Returns:" in said) == (function is not fairwave.add)
