"""`fairwave export` of models: from a stored run, without training."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

from tests.end_to_end.command_line import fairwave
from tests.statements import ROOT


@pytest.fixture
def cli(capsys, monkeypatch):
    return functools.partial(fairwave, capsys, monkeypatch)


@pytest.fixture(params=[7, 8], ids=["format 7", "format 8"])
def folder(request, tmp_path: Path) -> Path:
    """Two rounds of three devices with softmax regression of twelve features: see tests/data/README.md."""
    (tmp_path / "run").mkdir()
    shutil.copy(ROOT / "tests" / "data" / f"run-format-{request.param}.sqlite", tmp_path / "run" / "run.sqlite")
    return tmp_path / "run"


def test_every_format_of_file_holds_the_same_model(cli, folder: Path, tmp_path: Path):
    for ending in ("safetensors", "npz", "onnx"):
        said = cli("export", str(folder), "--to", str(tmp_path / f"m.{ending}"))
        expected = (
            f"m.{ending}: the access point's model under proposed with seed 7 after round 2\nprivacy: none proved\n"
        )
        assert (said.code, said.out) == (0, "") and said.err.endswith(expected)
    arrays = load_file(tmp_path / "m.safetensors")
    with np.load(tmp_path / "m.npz") as held:
        assert {name: held[name].tolist() for name in arrays} == {name: arrays[name].tolist() for name in arrays}
    inputs = np.random.default_rng(0).random((5, 12)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    expected_logits = inputs @ arrays["0.weight"] + arrays["0.bias"]
    np.testing.assert_allclose(session.run(["logits"], {"inputs": inputs})[0], expected_logits, atol=1e-5)


def test_a_device_has_a_copy_with_noise(cli, folder: Path, tmp_path: Path):
    cli("export", str(folder), "--to", str(tmp_path / "model.npz"))
    said = cli("export", str(folder), "--to", str(tmp_path / "copy.npz"), "--device", "1")
    assert "the copy of device 1 under proposed with seed 7 after round 2" in said.err
    with np.load(tmp_path / "model.npz") as model, np.load(tmp_path / "copy.npz") as copy:
        assert 0.0 < np.abs(model["0.weight"] - copy["0.weight"]).max() < 0.1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("m.pt",), "m.pt: unknown ending '.pt'; choose from .nc, .parquet, .csv, .safetensors, .npz, .onnx"),
        (("r.csv", "--round", "2"), "--round 2: chooses a model, and"),
        (("m.npz", "--round", "1"), "has no model of round 1 of proposed with seed 7; it has those of round 2 (see"),
        (("m.npz", "--device", "3"), "has no device 3; choose from 0 to 2"),
        (("m.npz", "--scheme", "fedavg"), "has no fedavg with seed 7; it has proposed with seed 7"),
        (("run/run.sqlite/m.npz",), "run/run.sqlite: cannot be made (File exists); choose another folder"),
    ],
)
def test_mistakes_are_one_line(cli, folder: Path, tmp_path: Path, options: tuple[str, ...], said: str):
    told = cli("export", str(folder), "--to", str(tmp_path / options[0]), *options[1:])
    assert told.code != 0 and said in told.err and told.err.count("\n") == 1


@pytest.mark.parametrize("name", ["r.nc", "r.parquet", "r.csv", "m.safetensors", "m.npz", "m.onnx"])
def test_a_missing_folder_is_made_and_a_file_that_cannot_be_written_is_named_once(
    cli, folder: Path, tmp_path: Path, name: str
):
    wanted = tmp_path / "not" / "there" / name
    assert cli("export", str(folder), "--to", str(wanted)).code == 0 and wanted.is_file()
    (tmp_path / name).mkdir()  # a folder where the file should be
    told = cli("export", str(folder), "--to", str(tmp_path / name))
    assert told.code == 4 and f"{name}: cannot be written (Is a directory); choose a writable folder\n" in told.err
    assert told.err.count(name) == 1 and told.err.count("\n") == 1


def test_nothing_is_made_for_a_run_that_is_not_there(cli, tmp_path: Path):
    for name in ("r.csv", "m.npz"):
        assert cli("export", str(tmp_path / "run"), "--to", str(tmp_path / "new" / name)).code == 5
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_does_not_fit_is_refused_by_run(cli, folder: Path, tmp_path: Path):
    cli("export", str(folder), "--to", str(tmp_path / "m.safetensors"))
    told = cli("run", "small", "--init-from", str(tmp_path / "m.safetensors"), "--out", str(tmp_path / "new"))
    assert told.code == 2 and told.err.count("\n") == 1
    assert "m.safetensors: has no array '1." in told.err and not (tmp_path / "new").exists()
    told = cli("run", "small", "--init-from", str(tmp_path / "m.onnx"), "--out", str(tmp_path / "new"))
    assert told.code == 2 and "unknown ending '.onnx' for a model; choose from .safetensors, .npz" in told.err
