"""Models of earlier rounds, devices' copies, and runs that begin with a model from a file."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import fairwave
from fairwave.data.sources import load_for
from fairwave.errors import ArgumentError, StoreError
from fairwave.report.privacy_statement import statement
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.model_export import ExportedModel
from fairwave.runs.order import Order, Track
from fairwave.runs.session import resume, run
from tests.builders import SOFTMAX_MNIST
from tests.statements import made_up

TRACK = Track("proposed", 0)


def order(*overrides: str, rounds: int = 4, init_from: Path | None = None) -> Order:
    scenario = fairwave.load_scenario("small", [*SOFTMAX_MNIST, *overrides])
    return Order.checked(scenario, ["proposed"], [0], rounds, init_from)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four rounds, of which the second and the last are kept."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    run(order("run.keep_models=2", "cell.participants=2"), folder, "test")
    return folder


@pytest.fixture(scope="module")
def states() -> list:
    """What the rounds of the same run leave in memory."""
    cell = Experiment(order("cell.participants=2")).cell(TRACK)
    return [(done.state.server.global_params, cell.copies(done.state)) for done in run_rounds(cell, 4)]


@pytest.mark.parametrize("number", [2, 4])
def test_kept_rounds_have_the_models_that_training_had(kept: Path, states: list, number: int):
    params, copies = states[number - 1]
    with fairwave.open_run(kept) as opened:
        for name in ("weight", "bias"):
            np.testing.assert_array_equal(opened.model("proposed", round=number)[f"0.{name}"], params[0][name])
            for device in range(3):
                held = opened.model("proposed", round=number, device=device)[f"0.{name}"]
                np.testing.assert_allclose(held, copies[0][name][device], atol=1e-7)  # made alone: another rounding
    assert np.abs(copies[0]["weight"][0] - params[0]["weight"]).max() > 1e-3  # copies are noisy


def test_rounds_that_were_not_kept_are_refused_with_those_that_were(kept: Path):
    with fairwave.open_run(kept) as opened:
        with pytest.raises(
            ArgumentError, match=r"has no model of round 3 .* it has those of rounds 2, 4 \(see run.kee"
        ):
            opened.model("proposed", round=3)
        with pytest.raises(ArgumentError, match="has no device 3; choose from 0 to 2"):
            opened.model("proposed", device=3)


@pytest.mark.slow
def test_only_the_last_round_is_kept_by_default_and_copies_are_found_among_cheats(tmp_path: Path):
    cheats = 'cheating.adversaries=[{ behaviour = "zero_update", devices = [1] }]'
    run(order(cheats, rounds=2), tmp_path / "run", "test")
    cell = Experiment(order(cheats, rounds=2)).cell(TRACK)
    *_, last = run_rounds(cell, 2)
    with fairwave.open_run(tmp_path / "run") as opened:
        copies = cell.copies(last.state)
        np.testing.assert_array_equal(opened.model("proposed", device=1)["0.weight"], copies[0]["weight"][1])
        with pytest.raises(ArgumentError, match=r"has no model of round 1 .* it has those of round 2 "):
            opened.model("proposed", round=1)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE kept SET content = zeroblob(length(content))",
        "UPDATE kept SET round = 0 WHERE round = 1",
        "UPDATE kept SET part = 1",
    ],
)
def test_a_changed_model_is_found(kept: Path, tmp_path: Path, change: str):
    shutil.copy(kept / "run.sqlite", tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as connection:
        connection.execute(change)
    with pytest.raises(StoreError, match="a kept model of proposed with seed 0 does not match its digest"):
        fairwave.open_run(tmp_path)


def test_an_exported_model_says_where_it_comes_from_and_what_is_proved(kept: Path, tmp_path: Path):
    with fairwave.open_run(kept) as opened:
        opened.exported("proposed", round=2, device=1).write(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as held:
        about = json.loads(str(held["__metadata__"]))
    wanted = {"scheme": "proposed", "seed": "0", "round": "2", "copy_of": "device 1", "input_shape": "[784]"}
    assert {name: about[name] for name in wanted} == wanted
    assert json.loads(about["classes"]) == list(range(10))
    assert json.loads(about["privacy"])["epsilon"] == "none proved"


def test_epsilons_are_those_of_the_account_up_to_the_round():
    made = made_up("fair-mlp", rounds=5)
    (track, ledger), *_ = made.ledgers.items()
    given = Order(made.scenario, (track[0],), (track[1],), 5)
    models = [ExportedModel(given, Track(*track), number, None, {}, ledger) for number in (2, 5)]
    early, whole = (model.epsilons() for model in models)
    assert early is not None and whole is not None
    rows = {row["about"]: row["epsilon"] for row in statement(made)["totals"] if row["scheme"] == track[0]}
    assert whole == {audience: rows[audience] for audience in whole} and "access point" in whole
    assert 0.0 < early["access point"] < whole["access point"]
    privacy = json.loads(models[1].metadata()["privacy"])
    assert privacy["epsilon"] == whole and privacy["mode"] == "provable" and privacy["delta"] == 1e-5
    assert any(claim.startswith("Protected: ") for claim in privacy["claims"])


def test_a_model_on_features_says_that_they_are_not_part_of_it():
    scenario = fairwave.load_scenario("fair")
    about = ExportedModel(Order(scenario), Track("proposed", 0), 1, None, {}, []).metadata()
    assert (
        about["input"].startswith("3969 features 'scattering' of a sample") and "not part of the file" in about["input"]
    )


def first_model(folder: Path, scale: float = 1.0, name: str = "first.npz") -> Path:
    draw = np.random.default_rng(5)
    arrays = {"0.weight": scale * draw.normal(size=(784, 10)), "0.bias": draw.normal(size=10)}
    np.savez(folder / name, **{key: value.astype(np.float32) for key, value in arrays.items()})
    return folder / name


def test_training_begins_with_the_model_of_the_file(tmp_path: Path):
    """Every device's first copy has the accuracy that NumPy finds for the file's parameters."""
    path = first_model(tmp_path)
    found = fairwave.simulate(order().scenario, ["proposed"], rounds=1, init_from=path).results
    with np.load(path) as held:
        weight, bias = held["0.weight"].astype(float), held["0.bias"].astype(float)
    data = load_for(order().scenario.data)
    inputs, labels = data.test_inputs[:1000].reshape(1000, -1) / 255.0, data.test_labels[:1000]
    expected = np.mean(np.argmax(inputs @ weight + bias, axis=1) == labels)
    np.testing.assert_allclose(found["received_accuracy"].values[0, 0, 0], expected, atol=1e-3)
    plain = fairwave.simulate(order().scenario, ["proposed"], rounds=1).results
    assert abs(plain["received_accuracy"].values[0, 0, 0, 0] - expected) > 5e-3


def test_a_run_that_began_with_a_file_resumes_to_the_same_result_and_with_no_other_file(tmp_path: Path):
    path = first_model(tmp_path)
    run(order(init_from=path, rounds=2), tmp_path / "whole", "test")
    run(order(init_from=path, rounds=1), tmp_path / "broken", "test")
    moved = tmp_path / "moved.npz"
    path.rename(moved)
    with pytest.raises(StoreError, match=r"first.npz: is gone, and the run began with that model; restore it, or gi"):
        resumed = order(init_from=moved, rounds=2).init_from
        assert resumed is not None
        Experiment(Order(order().scenario, ("proposed",), (0,), 2, type(resumed)(str(path), resumed.digest)))
    run(order(init_from=moved, rounds=2), tmp_path / "broken", "test")
    with fairwave.open_run(tmp_path / "whole") as whole, fairwave.open_run(tmp_path / "broken") as broken:
        np.testing.assert_array_equal(whole.model("proposed")["0.weight"], broken.model("proposed")["0.weight"])
        assert whole.results.attrs["init_from_digest"] == broken.results.attrs["init_from_digest"]
    other = first_model(tmp_path, scale=2.0, name="other.npz")
    with pytest.raises(
        StoreError, match=r"holds a run that began with model .*moved.npz .*, not with model .*other.npz"
    ):
        run(order(init_from=other, rounds=3), tmp_path / "broken", "test")
    with pytest.raises(StoreError, match="not with the scenario's own first model; choose another --out"):
        run(order(rounds=3), tmp_path / "broken", "test")
    first_model(tmp_path, scale=3.0, name="moved.npz")
    with (
        sqlite3.connect(tmp_path / "broken" / "run.sqlite"),
        pytest.raises(StoreError, match="has changed since the ru"),
    ):
        unfinished = order(init_from=first_model(tmp_path), rounds=2)
        run(unfinished, tmp_path / "third", "test")
        first_model(tmp_path, scale=3.0)
        Experiment(unfinished)
    assert not resume(tmp_path / "broken", "test")  # nothing is left, so that nobody needs the file


def test_a_model_of_another_size_is_refused_before_a_folder_is_made(tmp_path: Path):
    np.savez(tmp_path / "small.npz", **{"0.weight": np.zeros((784, 4), np.float32), "0.bias": np.zeros(4, np.float32)})
    with pytest.raises(
        ArgumentError, match=r"small.npz: '0.bias' has shape \[4\], .* has \[10\]; give a model of that s"
    ):
        run(order(init_from=tmp_path / "small.npz"), tmp_path / "run", "test")
    assert not (tmp_path / "run").exists()


def test_zeros_and_a_file_exclude_each_other(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"begins with zeros \(learning.first_model = 'zero'\); leave one out"):
        order("learning.first_model=zero", init_from=first_model(tmp_path))
