"""`fairwave init`: everything that it writes runs as it is."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import fairwave as fairwave_package
from fairwave.cli.init_command import FILES, init
from fairwave.scenario.file_schema import file_schema
from tests.end_to_end.command_line import fairwave

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Path:
    """One folder for all tests: a process knows one plugin of a name."""
    folder = tmp_path_factory.mktemp("started") / "mine"
    init(folder)
    return folder


def code_cells(folder: Path) -> list[str]:
    notebook = json.loads((folder / "notebook.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_fleet_and_the_policy_are_planned_with(started: Path, capsys, monkeypatch):
    scenario = str(started / "scenario.toml")
    policies = ("--policies", "proposed,max_power,half_power")
    said = fairwave(capsys, monkeypatch, "plan", scenario, "--no-fading", "--format", "json", *policies)
    assert said.code == 0 and said.err == ""
    devices = json.loads(said.out)["policies"]["half_power"]["devices"]
    assert [row["distance_m"] for row in devices] == [35.0, 80.0, 120.0, 160.0, 190.0]
    # Half of what each row of the fleet has; the far ones still meet the deadline with it.
    assert [round(row["transmit_power_w"], 6) for row in devices] == [0.5, 0.5, 0.25, 0.5, 0.5]
    Draft202012Validator(file_schema()).validate(tomllib.loads((started / "scenario.toml").read_text("utf-8")))


def test_nothing_is_replaced(tmp_path: Path, capsys, monkeypatch):
    folder = tmp_path / "mine"
    said = fairwave(capsys, monkeypatch, "init", str(folder))
    assert said.code == 0 and f"fairwave plan {folder / 'scenario.toml'}" in said.out
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "examples"])
    (folder / "scenario.toml").write_text("mine")
    said = fairwave(capsys, monkeypatch, "init", str(folder))
    assert said.code == 4 and f"{folder / 'scenario.toml'}: is there already; choose another folder" in said.err
    assert (folder / "scenario.toml").read_text() == "mine"


def test_what_help_texts_and_messages_cite_is_written(tmp_path: Path, capsys, monkeypatch):
    """Whoever has the wheel alone finds every page and example that a text of the package names."""
    said = fairwave(capsys, monkeypatch, "init", str(tmp_path), "--docs")
    assert said.code == 0 and "examples/, docs/" in said.out
    texts = [path.read_text("utf-8") for path in Path(fairwave_package.__file__).parent.rglob("*.py")]
    cited = {path for text in texts for path in re.findall(r"\b(?:docs|examples)/\w+\.\w+", text)}
    assert {"examples/sweep.toml", "examples/verify_statement.py", "docs/wire.md"} <= cited
    assert sorted(path for path in cited if not (tmp_path / path).is_file()) == []
    original = ROOT / "examples" / "sweep.toml"
    assert (tmp_path / "examples" / "sweep.toml").read_bytes() == original.read_bytes()


def test_the_notebook_is_a_notebook(started: Path):
    assert len([ast.parse(cell) for cell in code_cells(started)]) == 4


@pytest.mark.slow
def test_the_scenario_trains_and_the_notebook_runs(started: Path, capsys, monkeypatch):
    asked = ("--schemes", "proposed,half_power", "--rounds", "2", "--out", str(started / "run"))
    said = fairwave(capsys, monkeypatch, "run", str(started / "scenario.toml"), *asked)
    assert said.code == 0 and "half_power" in said.out and "warning" not in said.err
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(started)
    names: dict[str, object] = {}
    for cell in code_cells(started):
        exec(cell, names)
    assert names["simulation"].results.sizes == {"scheme": 3, "seed": 1, "round": 3, "device": 5, "class": 10}
