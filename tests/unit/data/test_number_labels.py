"""Labels that are numbers to predict, from CSV folders and .npz files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairwave.data.sources import load, load_for
from fairwave.errors import ScenarioError
from fairwave.scenario.loading import load_scenario

NAMES = ("train_images", "train_labels", "test_images", "test_labels")


def csv_folder(folder: Path, *labels: object, test: str = "1") -> str:
    rows = [f"{label},{place}" for place, label in enumerate(labels)]
    (folder / "train.csv").write_text("\n".join(["label,a", *rows]) + "\n")
    (folder / "test.csv").write_text(f"label,a\n{test},1\n")
    return str(folder)


def npz_file(path: Path, labels: np.ndarray) -> str:
    inputs = np.zeros((len(labels), 2), np.float32)
    np.savez(path, **dict(zip(NAMES, (inputs, labels, inputs, labels), strict=True)))
    return str(path)


def test_numbers_of_a_csv_folder(tmp_path: Path):
    """Whole numbers are numbers like all others, whether or not one among them has a fraction."""
    for last in ("4", "4.5"):
        data = load(csv_folder(tmp_path, -3, 70000001, last), target="number")
        assert data.target == "number" and data.train_labels.dtype == data.test_labels.dtype == np.float32
        assert data.train_labels.tolist() == [-3.0, 70000000.0, float(last)] and data.test_labels.tolist() == [1.0]
    assert load(csv_folder(tmp_path, 0, 1)).target == "class"


def test_numbers_of_an_npz_file(tmp_path: Path):
    for labels in (np.array([0.5, -2.0]), np.array([7, -2])):
        data = load(npz_file(tmp_path / "set.npz", labels), target="number")
        assert data.train_labels.tolist() == labels.tolist() and data.target == "number"


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("inf", "train labels hold values that are not finite"),
        ("1e39", "train labels hold values that are not finite in single precision; clean or rescale them"),
        ("nan", "column 'label' has empty cells"),
        ("", "column 'label' has empty cells"),
        ("warm", "column 'label' holds string; give numbers"),
    ],
)
def test_labels_that_are_no_numbers_are_refused(label, said, tmp_path: Path):
    with pytest.raises(ScenarioError, match=said) as error:
        load(csv_folder(tmp_path, 1.5, label), target="number")
    assert "\n" not in str(error.value)


def test_arrays_that_are_no_numbers_are_refused(tmp_path: Path):
    for bad in (np.nan, np.inf):
        with pytest.raises(ScenarioError, match="not finite"):
            load(npz_file(tmp_path / "set.npz", np.array([0.5, bad])), target="number")
    with pytest.raises(ScenarioError, match="train labels are <U1, not numbers; convert them"):
        load(npz_file(tmp_path / "set.npz", np.array(["a", "b"])), target="number")


def test_numbers_where_classes_should_be_name_the_remedy(tmp_path: Path):
    with pytest.raises(
        ScenarioError, match=r"column 'label' holds double; give classes .* set data.target to 'number'"
    ):
        load(csv_folder(tmp_path, 0.5, 1.5))
    with pytest.raises(ScenarioError, match=r"number the classes from 0, or set data.target to 'number'"):
        load(npz_file(tmp_path / "set.npz", np.array([0.5, 1.5])))


def test_classes_where_numbers_should_be_name_the_remedy():
    with pytest.raises(ScenarioError, match=r"data.target: 'number', but the labels of 'mnist' are classes; set it to"):
        load("mnist", target="number")


def test_the_scenario_says_which(tmp_path: Path):
    wanted = [f"data.source={csv_folder(tmp_path, 1.5, 2)}", "data.target=number", "learning.model=regression"]
    data = load_scenario("small", [*wanted, "learning.layer_sizes=[1, 1]"]).data
    assert load_for(data).train_labels.tolist() == [1.5, 2.0]
    assert load_for(data, own=csv_folder(tmp_path, 3, 4)).target == "number"
