"""Runs whose mode proves something keep to themselves what no proof covers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fairwave.errors import StoreError
from fairwave.extensions import PRIVACY_MODES
from fairwave.runs import session
from fairwave.runs import store as store_module
from fairwave.runs.experiment import Experiment
from fairwave.runs.folder import make_folder
from fairwave.runs.order import Order, Track
from fairwave.runs.results import _samples
from fairwave.runs.salt import FILE as SALT
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from tests.builders import LIKE_THE_PAPER, SOFTMAX_MNIST, clusters

TRACK = Track("max_power", 0)
PRINT = bytes(range(32))
"""A fingerprint: first of the data, then of the split."""
SMALL = ("cell.num_devices=5", "learning.layer_sizes=[30, 8, 3]", "learning.batch_size=16", LIKE_THE_PAPER)


def order(preset: str, *overrides: str, seeds: tuple[int, ...] = (0,)) -> Order:
    return Order.checked(load_scenario(preset, [*SMALL, *overrides]), ("max_power",), seeds, 2)


def begun(folder: Path, preset: str = "fair-mlp") -> RunStore:
    folder.mkdir()
    store = RunStore.create(folder, order(preset, seeds=(0, 1)))
    store.begin(TRACK, PRINT, {"samples": np.ones((5, 1))})
    return store


def test_fingerprints_are_keyed_and_the_key_is_not_in_the_database(tmp_path: Path):
    begun(tmp_path / "run").close()
    held = (tmp_path / "run" / "run.sqlite").read_bytes()
    salt = (tmp_path / "run" / SALT).read_bytes()
    assert PRINT[:16] not in held and PRINT[16:] not in held and salt not in held
    assert (tmp_path / "run" / SALT).stat().st_mode & 0o777 == 0o600
    begun(tmp_path / "other").close()
    assert (tmp_path / "other" / SALT).read_bytes() != salt


def test_changed_data_are_refused_all_the_same(tmp_path: Path):
    begun(tmp_path / "run").close()
    store = RunStore(tmp_path / "run", write=True)
    store.begin(TRACK, PRINT, {})
    other_split = PRINT[:16] + bytes(16)
    store.begin(Track("max_power", 1), other_split, {"samples": np.ones((5, 1))})
    for track, fingerprint in ((TRACK, other_split), (Track("max_power", 1), bytes(16) + other_split[16:])):
        with pytest.raises(StoreError, match="have changed since"):
            store.begin(track, fingerprint, {})
    store.close()


def test_without_its_salt_a_run_can_be_read_but_not_gone_on_with(tmp_path: Path):
    begun(tmp_path / "run").close()
    (tmp_path / "run" / SALT).unlink()
    reader = RunStore(tmp_path / "run")
    assert reader.order.seeds == (0, 1) and reader.layout(0) is not None
    reader.close()
    store = RunStore(tmp_path / "run", write=True)
    with pytest.raises(
        StoreError, match=r"run.salt: cannot be read .*; restore it from a copy, or start another"
    ) as error:
        store.begin(TRACK, PRINT, {})
    assert "\n" not in str(error.value)
    (tmp_path / "run" / SALT).write_bytes(b"short")
    with pytest.raises(StoreError, match="damaged"):
        store.begin(TRACK, PRINT, {})
    store.close()


def test_a_start_that_was_interrupted_leaves_a_salt_that_bothers_nobody(tmp_path: Path):
    (tmp_path / SALT).write_bytes(b"left over")
    make_folder(tmp_path)
    RunStore.create(tmp_path, order("fair-mlp")).close()
    assert len((tmp_path / SALT).read_bytes()) == 32


def test_where_nothing_is_proved_fingerprints_stay_as_they_were(tmp_path: Path):
    begun(tmp_path / "run", "paper-clean").close()
    assert not (tmp_path / "run" / SALT).exists()
    assert PRINT in (tmp_path / "run" / "run.sqlite").read_bytes()


def test_a_run_from_before_there_were_salts_goes_on_without_one(tmp_path: Path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(store_module, "mode_of", lambda privacy: PRIVACY_MODES["paper"])
        begun(tmp_path / "run").close()
    store = RunStore(tmp_path / "run", write=True)
    store.begin(TRACK, PRINT, {})
    with pytest.raises(StoreError, match="have changed since"):
        store.begin(TRACK, bytes(32), {})
    store.close()


@pytest.mark.parametrize(
    ("preset", "settings", "classes"),
    [("fair-mlp", (), 1), ("fair-mlp", ("privacy.publish_class_counts=true",), 3), ("paper-clean", (), 3)],
)
def test_class_counts_are_stored_only_where_that_is_asked_for(preset, settings, classes):
    experiment = Experiment(order(preset, *settings), data=clusters())
    samples = experiment.layout(experiment.cell(TRACK))["samples"]
    assert samples.shape == (5, classes) and samples.sum() == 300


def test_seeds_that_were_stored_with_and_without_classes_go_together():
    with_classes, without = np.array([[2, 3], [4, 5]]), np.array([[6], [7]])
    assert _samples([with_classes, without]).tolist() == [[[5], [9]], [[6], [7]]]
    assert _samples([with_classes, with_classes]).shape == (2, 2, 2)


@pytest.mark.parametrize(("preset", "folder_mode", "file_mode"), [("fair-mlp", 0o700, 0o600), ("small", 0o755, 0o644)])
def test_folders_of_runs_that_prove_are_private(tmp_path: Path, monkeypatch, preset, folder_mode, file_mode):
    before = os.umask(0o022)
    try:
        monkeypatch.setattr(session, "_work_through", lambda *rest: True)
        asked = Order.checked(load_scenario(preset, SOFTMAX_MNIST), ("max_power",), (0,), 1)
        session.run(asked, tmp_path / "run", "test")
    finally:
        os.umask(before)
    assert (tmp_path / "run").stat().st_mode & 0o777 == folder_mode
    for name in ("run.sqlite", "run.seal", "run.lock"):
        assert (tmp_path / "run" / name).stat().st_mode & 0o777 == file_mode, name
