"""Trackers, each read back by its own program; nothing leaves the machine."""

from __future__ import annotations

import functools
import importlib.util
import json
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fairwave
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import fairwave as command
from tests.statements import ROOT


@pytest.fixture
def cli(capsys, monkeypatch):
    return functools.partial(command, capsys, monkeypatch)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anything but a socket of this machine fails."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        assert self.family == socket.AF_UNIX, f"a connection to {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_here)
    for name in ("MLFLOW_TRACKING_URI", "WANDB_MODE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)


def run(cli, folder: Path, tracker: str, rounds: int) -> xr.Dataset:
    """A run that is told to a tracker; its results."""
    options = ("--rounds", str(rounds), "--schemes", "proposed", "--out", str(folder), "--track", tracker)
    said = cli("run", "small", *as_options(SOFTMAX_MNIST), *options)
    assert said.code == 0 and "failed" not in said.err, said.err
    with fairwave.open_run(folder) as opened:
        return opened.results.isel(scheme=0, seed=0)


def test_tensorboard_reads_every_round_once_also_when_a_run_goes_on(cli, tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(cli, tmp_path / "run", "tensorboard", 2)
    results = run(cli, tmp_path / "run", "tensorboard", 3)
    read = EventAccumulator(str(tmp_path / "run" / "tensorboard" / "proposed-seed-0")).Reload()
    for name in ("test_accuracy", "global_loss"):
        points = read.Scalars(name)
        assert [point.step for point in points] == [1, 2, 3]
        np.testing.assert_allclose([point.value for point in points], results[name].values, rtol=1e-6)
    assert [point.step for point in read.Scalars("energy_j")] == [1, 2, 3]
    assert "ended/text_summary" in read.Tags()["tensors"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # MLflow's own, about SQLAlchemy
def test_mlflow_keeps_one_run_for_a_scheme_and_seed_that_goes_on(cli, tmp_path: Path):
    from mlflow import MlflowClient

    run(cli, tmp_path / "run", "mlflow", 2)
    results = run(cli, tmp_path / "run", "mlflow", 3)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'run' / 'mlflow.db'}")
    (experiment,) = [each for each in client.search_experiments() if each.name == str(tmp_path / "run")]
    (kept,) = client.search_runs([experiment.experiment_id])
    assert (kept.info.run_name, kept.info.status) == ("proposed-seed-0", "FINISHED")
    assert kept.data.params["learning.model"] == "softmax" and kept.data.tags["fairwave.ended"] == "done"
    points = client.get_metric_history(kept.info.run_id, "test_accuracy")
    assert [point.step for point in points] == [1, 2, 3]
    np.testing.assert_allclose([point.value for point in points], results["test_accuracy"].values, rtol=1e-6)


def wandb_records(path: Path) -> Iterator[bytes]:
    """The records of an offline file: a header of 7 bytes, and LevelDB's log format in blocks of 32 KiB."""
    content, place, parts = path.read_bytes(), 7, []
    assert content.startswith(b":W&B")
    while place + 7 <= len(content):
        left = 32_768 - place % 32_768
        if left < 7:  # no room for the head of a record: padding
            place += left
            continue
        _, size, kind = struct.unpack_from("<IHB", content, place)
        parts.append(content[place + 7 : place + 7 + size])
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield b"".join(parts)
            parts = []


@pytest.mark.slow
def test_wandb_writes_what_it_can_send_later(cli, tmp_path: Path):
    results = run(cli, tmp_path / "run", "wandb", 2)
    from wandb.proto import wandb_internal_pb2

    (path,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    rows, settings = [], {}
    for content in wandb_records(path):
        record = wandb_internal_pb2.Record.FromString(content)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
        if record.WhichOneof("record_type") == "run":
            settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
    assert settings["scheme"] == "proposed" and settings["learning.model"] == "softmax"
    assert [row["_step"] for row in rows] == [1, 2]
    np.testing.assert_allclose([row["test_accuracy"] for row in rows], results["test_accuracy"].values, rtol=1e-6)


def test_what_trackers_wrote_goes_with_the_run(cli, tmp_path: Path):
    folder = tmp_path / "run"
    for name in ("tensorboard", "wandb"):
        (folder / name).mkdir(parents=True)
        (folder / name / "events").write_bytes(b"some")
    (folder / "mlflow.db").write_bytes(b"some")
    shutil.copy(ROOT / "tests" / "data" / "run-format-7.sqlite", folder / "run.sqlite")
    assert cli("runs", "rm", str(folder), "--yes").out == f"removed {folder}\n"
    assert not folder.exists()


def test_trackers_that_are_not_there_are_refused_before_anything_is_trained(cli, tmp_path: Path, monkeypatch):
    unknown = cli("run", "small", "--track", "tensorbord", "--out", str(tmp_path / "run"))
    assert unknown.code == 2 and "--track: unknown tracker 'tensorbord'; did you mean 'tensorboard'?" in unknown.err
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    missing = cli("run", "small", "--track", "mlflow", "--out", str(tmp_path / "run"))
    expected = "fairwave: --track mlflow: needs the package mlflow; install it with: pip install 'fairwave[mlflow]'\n"
    assert (missing.code, missing.err) == (2, expected)
    assert not (tmp_path / "run").exists()


def test_a_tracker_that_fails_is_a_line_and_the_run_is_whole(cli, tmp_path: Path):
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "import fairwave\n"
        "class Broken(fairwave.Callback):\n"
        "    def on_round(self, training, done):\n"
        "        raise OSError('no space left')\n"
        "broken = fairwave.Tracker('broken', 'nowhere', 'fairwave', lambda folder: Broken())\n"
    )
    options = ("--rounds", "2", "--schemes", "proposed", "--plugin", str(plugin), "--track", "broken")
    said = cli("run", "small", *as_options(SOFTMAX_MNIST), *options, "--out", str(tmp_path / "run"))
    assert (
        said.code == 0 and said.err.count("Broken.on_round: failed for proposed-seed-0 (OSError: no space left)") == 1
    )
    with fairwave.open_run(tmp_path / "run", plugins=[plugin]) as opened:
        assert opened.results.sizes["round"] == 2 and not opened.results["loss"].isnull().any()
