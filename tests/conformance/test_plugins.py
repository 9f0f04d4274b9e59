"""Everything that can be extended is extended from outside the package: by a file, or by an object."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave import extensions
from fairwave.errors import ArgumentError, ScenarioError, StoreError
from fairwave.extensions import ACCOUNTANTS, BEHAVIOURS, DEFENCES, RULES, SCHEMES
from fairwave.plugins import load_plugin, plugin_digest
from fairwave.registry import Registry
from fairwave.runs.order import Order
from fairwave.runs.session import resume, run
from fairwave.runs.store import RunStore
from fairwave.trackers.tracker import trackers_for
from tests.builders import SOFTMAX_MNIST, as_options, clusters

EVERYTHING = Path(__file__).parents[1] / "plugins" / "everything.py"
SCENARIO = """
plugins = ["mine.py"]
extends = "small"
[cell]
num_devices = 3
[data]
source = "stripes"
samples_per_device = 60
[radio]
fading = { law = "weibull", shape = 1.5 }
[learning]
model = "tanh_mlp"
layer_sizes = [12, 4]
batch_size = 8
[compute]
bits_per_iteration = 802816
[defences]
use = ["no_first_value"]
[[cheating.adversaries]]
behaviour = "doubled"
devices = [1]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario that names one of everything, beside the plugin that has it."""
    shutil.copy(EVERYTHING, tmp_path / "mine.py")
    (tmp_path / "mine.toml").write_text(SCENARIO)
    return tmp_path / "mine.toml"


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds is gone after it."""
    for registry in extensions.ALL.values():
        monkeypatch.setattr(registry, "_added", dict(registry._added))
    monkeypatch.setattr("fairwave.plugins._LOADED", {})


def test_a_scenario_names_everything_that_its_plugin_has(scenario: Path) -> None:
    simulation = fairwave.simulate(str(scenario), ["frugal", "proposed"], rounds=3)
    results = simulation.results
    assert (results["local_iterations"].sel(scheme="frugal") == 10).all()
    assert results.sizes["class"] == 4 and results["cheating"].sel(device=1).all()
    legend = results["findings"].attrs
    assert (legend["flag_masks"], legend["flag_meanings"]) == ([1, 2], "no_first_value not_finite")
    caught = results["findings"].values & 1
    assert caught.any() and (results["deviation"].values[caught > 0] == 1.0).all()
    assert simulation.scenario.learning.num_parameters() == 13 * 4
    assert simulation.scenario.radio.fading.name == "weibull"


def test_a_plugin_adds_a_privacy_mode_and_an_accountant() -> None:
    load_plugin(EVERYTHING)
    releases = {(1.3, 0.02): 500}
    cautious, tight = (ACCOUNTANTS[name]().compose(releases).epsilon(1e-5) for name in ("cautious", "tight"))
    assert cautious > tight
    scenario = fairwave.load_scenario("small", ["privacy.mode=without_reports"])
    assert Order.checked(scenario, ["proposed"]).scenario.privacy.mode == "without_reports"
    with pytest.raises(ScenarioError, match="'afl' has devices report losses; choose another"):
        Order.checked(scenario, ["afl"])


def test_a_plugin_adds_a_tracker(tmp_path: Path) -> None:
    load_plugin(EVERYTHING)
    (callback,) = trackers_for(["silent"], tmp_path)
    assert isinstance(callback, fairwave.Callback)


def test_nothing_else_can_be_added() -> None:
    for thing in (object(), fairwave.Scheme, 3):
        with pytest.raises(ArgumentError, match="is nothing that fairwave can be extended by"):
            fairwave.add(thing)


def test_a_run_records_its_plugins_and_refuses_changed_ones(scenario: Path, tmp_path: Path) -> None:
    order = Order.checked(fairwave.load_scenario(str(scenario)), ["frugal"], [0], 1)
    run(order, tmp_path / "run", "test")
    with fairwave.open_run(tmp_path / "run", plugins=[scenario.parent / "mine.py"]) as stored:
        assert stored.results.sizes["round"] == 1
    store = RunStore(tmp_path / "run")
    (origin,) = store.plugins()
    store.close()
    plugin = scenario.parent / "mine.py"
    assert (origin.place, origin.digest) == (str(plugin), plugin_digest(plugin))
    longer = dataclasses.replace(order, rounds=2)
    run(longer, tmp_path / "run", "test")  # the same plugin: it goes on
    plugin.write_text(EVERYTHING.read_text().replace("fewest iterations", "FEWEST iterations"))
    with pytest.raises(
        StoreError, match=r"was begun with plugin .*mine\.py, which has changed since; restore the old one"
    ):
        run(dataclasses.replace(order, rounds=3), tmp_path / "run", "test")
    assert not resume(tmp_path / "run", "test")  # nothing is left to do: looking at it is allowed


EXECUTED = "\nimport pathlib\npathlib.Path(__file__).with_suffix('.executed').touch()\n"


@pytest.mark.slow
def test_reading_a_run_executes_none_of_its_plugins(scenario: Path, tmp_path: Path) -> None:
    """Whoever is sent a run can look at it: code runs only if it is named, or if the run is gone on with."""
    plugin, folder = scenario.parent / "mine.py", tmp_path / "run"
    plugin.write_text(plugin.read_text() + EXECUTED)
    mark = plugin.with_suffix(".executed")

    def fairwave_says(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fairwave", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    done = fairwave_says("run", scenario, "--schemes", "frugal", "--rounds", 1, "--out", folder)
    assert done.returncode == 0 and mark.exists(), done.stderr
    mark.unlink()
    for reading in (("runs", "show", folder), ("export", folder, "--to", tmp_path / "r.csv"), ("privacy", folder)):
        refused = fairwave_says(*reading)
        assert refused.returncode == 5 and not mark.exists()
        assert f"needs plugin {plugin}, and reading a run executes no code; if you trust that file" in refused.stderr
    assert (
        "reading a run executes no code" in fairwave_says("runs", "list", "--in", tmp_path).stdout and not mark.exists()
    )
    assert fairwave_says("runs", "show", folder, "--plugin", plugin).returncode == 0 and mark.exists()


def test_a_run_whose_plugins_were_tampered_with_in_the_file_is_damaged(scenario: Path, tmp_path: Path) -> None:
    run(Order.checked(fairwave.load_scenario(str(scenario)), ["frugal"], [0], 1), tmp_path / "run", "test")
    (tmp_path / "run" / "run.seal").unlink()
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as connection:
        connection.execute("UPDATE plugin SET digest = 'another'")
    with pytest.raises(StoreError, match="damaged"):
        RunStore(tmp_path / "run")


@pytest.mark.slow
def test_a_plugin_on_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairwave"]
    plugin, folder = ["--plugin", str(EVERYTHING)], tmp_path / "run"
    options = [*as_options(SOFTMAX_MNIST), "--rounds", "1", "--schemes", "frugal", "--out", str(folder)]
    done = subprocess.run([*command, "run", "small", *plugin, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "frugal" in done.stdout, done.stderr
    shown = subprocess.run([*command, "runs", "show", str(folder)], capture_output=True, text=True, check=False)
    assert f"plugin {EVERYTHING}: {plugin_digest(EVERYTHING)}" in shown.stdout
    planned = subprocess.run(
        [*command, "plan", *plugin, "--policies", "fewest"], capture_output=True, text=True, check=False
    )
    assert planned.returncode == 0 and "fewest" in planned.stdout
    listed = subprocess.run([*command, "scenario", "schemes", *plugin], capture_output=True, text=True, check=False)
    assert "frugal            the fewest iterations, noise by contribution" in listed.stdout


def test_objects_are_taken_wherever_names_are() -> None:
    base = load_members()
    rule, scheme, behaviour, defence = (base[name] for name in ("fewest", "frugal", "doubled", "no_first_value"))
    plan = fairwave.plan("small", [rule, "proposed"], draws=2)
    assert plan["policy"].values.tolist() == ["fewest", "proposed"] and (plan["local_iterations"][0] == 10).all()
    scenario = fairwave.load_scenario("small", ["learning.layer_sizes=[30, 3]", "compute.bits_per_iteration=802816"])
    changed = scenario.model_copy(
        update={
            "cheating": type(scenario.cheating)(adversaries=[{"behaviour": behaviour, "devices": [0]}]),
            "defences": type(scenario.defences)(use=[defence]),
        }
    )
    named = dataclasses.replace(scheme, name="by_name", plan="max_power")
    results = fairwave.simulate(changed, [scheme, named], rounds=1, data=clusters()).results
    assert results["scheme"].values.tolist() == ["frugal", "by_name"]
    assert named.plan is RULES["max_power"] and DEFENCES["no_first_value"] is defence
    assert BEHAVIOURS["doubled"] is behaviour and np.isfinite(results["loss"]).all()


def load_members() -> dict:
    """The plugin's members, without adding them."""
    module: dict = {"__name__": "everything"}
    sys.modules.setdefault("everything", type(sys)("everything"))
    exec(compile(EVERYTHING.read_text(), str(EVERYTHING), "exec"), module)
    return module


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x = 1\n", "defines no scheme, rule, behaviour, defence, model, data set or fading law"),
        ("def f(:\n", r"line 1: SyntaxError: .*; correct the plugin"),
        ("\n\n1 / 0\n", r"line 3: ZeroDivisionError: division by zero; correct the plugin"),
        (
            "import dataclasses\nfrom fairwave.schemes.proposed import proposed\n"
            "mine = dataclasses.replace(proposed, noisy_updates=False)\n",
            "scheme 'proposed': comes with fairwave; give yours another name",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_says_why(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "bad.py").write_text(content)
    with pytest.raises((ScenarioError, ArgumentError), match=said):
        load_plugin(tmp_path / "bad.py")


def test_a_missing_plugin_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nowhere\.py: plugin cannot be read \(No such file"):
        fairwave.load_scenario("small", plugins=[tmp_path / "nowhere.py"])


def test_two_things_of_one_name_are_refused() -> None:
    registry: Registry = Registry("thing", "things", {})
    registry.add(object(), "one")
    with pytest.raises(ArgumentError, match="thing 'one': another one of that name is there"):
        registry.add(object(), "one")


def test_every_registry_lists_what_it_has() -> None:
    for registry in extensions.ALL.values():
        for name in registry.builtin_names():
            assert registry[name].name == name and registry[name].extends == registry.group
            assert registry.group == "fading" or registry[name].summary
    with pytest.raises(ArgumentError, match="unknown scheme 'propsed'; did you mean 'proposed'"):
        SCHEMES["propsed"]
