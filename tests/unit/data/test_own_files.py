"""A device's own files: no value in one record decides whether they are read, or how others are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairwave.data.sources import MOST_CLASSES, load
from fairwave.errors import ScenarioError

TEST = "label,humidity,wind\n1,0.5,2\n"


def folder(path: Path, *rows: str) -> str:
    path.mkdir(exist_ok=True)
    (path / "train.csv").write_text("label,humidity,wind\n" + "".join(f"{row}\n" for row in rows))
    (path / "test.csv").write_text(TEST)
    return str(path)


@pytest.mark.parametrize(
    "odd",
    [
        "1,inf,2",
        "1,,2",
        "1,none,2",
        "1,1e400,2",
        ",0.1,2",
        "x,0.1,2",
        "1.5,0.1,2",
        "-3,0.1,2",
        "1,2",
        "1,2,3,4",
        '1,"2,3',
    ],
)
@pytest.mark.parametrize("target", ["class", "number"])
def test_one_odd_record_changes_nothing_for_the_others(tmp_path, odd, target):
    plain = load(folder(tmp_path / "a", "0,0.25,7", "1,0.1,2", "1,0.75,3"), strict=False, target=target)
    strange = load(folder(tmp_path / "b", "0,0.25,7", odd, "1,0.75,3"), strict=False, target=target)
    np.testing.assert_array_equal(strange.train_inputs[[0, 2]], plain.train_inputs[[0, 2]])
    np.testing.assert_array_equal(strange.train_labels[[0, 2]], plain.train_labels[[0, 2]])
    assert strange.train_inputs.dtype == plain.train_inputs.dtype
    assert strange.train_labels.dtype == plain.train_labels.dtype
    assert strange.train_inputs.shape == plain.train_inputs.shape


@pytest.mark.parametrize("label", ["", "x", "1.5", "-3", "1e12", "inf"])
def test_a_class_that_cannot_be_is_one_after_the_last(tmp_path, label):
    found = load(folder(tmp_path / "a", "0,0.25,7", f"{label},0.1,2"), strict=False)
    assert found.train_labels.tolist() == [0, MOST_CLASSES - 1]


@pytest.mark.parametrize("odd", ["1,inf,2", "1,,2", "1,none,2", "-3,0.1,2", "x,0.1,2"])
def test_data_that_are_shared_out_are_refused_for_the_same(tmp_path, odd):
    with pytest.raises(ScenarioError):
        load(folder(tmp_path / "a", "0,0.25,7", odd))


def test_a_fraction_does_not_change_how_large_numbers_are_rounded(tmp_path):
    large = "0,1152921573326323713,7"
    for strict in (True, False):
        whole = load(folder(tmp_path / "a", large, "1,7,2"), strict=strict)
        parts = load(folder(tmp_path / "b", large, "1,7.5,2"), strict=strict)
        assert whole.train_inputs[0, 0] == parts.train_inputs[0, 0]


def test_arrays_too(tmp_path):
    inputs, labels = np.array([[1.0], [np.nan]], np.float32), np.array([0, -1])
    np.savez(tmp_path / "own.npz", train_images=inputs, train_labels=labels, test_images=inputs, test_labels=labels)
    found = load(str(tmp_path / "own.npz"), strict=False)
    assert found.train_labels.tolist() == [0, MOST_CLASSES - 1] and np.isnan(found.train_inputs[1, 0])
    with pytest.raises(ScenarioError):
        load(str(tmp_path / "own.npz"))
