"""Files of parameters are what other readers expect, and what does not fit is refused with its reason."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from fairwave.errors import ArgumentError, OutputError
from fairwave.learning.model_files import parameters_like, read_arrays, write_arrays

ARRAYS = {"0.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T, "0.bias": np.array([1.5, -2.0], np.float32)}
LIKE = [{"bias": np.zeros(2, np.float32), "weight": np.zeros((3, 2), np.float32)}]


def as_the_format_says(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """safetensors by hand: the length of a JSON header, the header, and the bytes that it describes."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    about = header.pop("__metadata__")
    data = content[8 + size :]
    assert all(each["dtype"] == "F32" for each in header.values())
    return {
        name: np.frombuffer(data[slice(*each["data_offsets"])], np.float32).reshape(each["shape"])
        for name, each in header.items()
    }, about


def test_a_safetensors_file_follows_the_format(tmp_path: Path):
    write_arrays(tmp_path / "m.safetensors", ARRAYS, {"scheme": "proposed"})
    held, about = as_the_format_says((tmp_path / "m.safetensors").read_bytes())
    assert about == {"scheme": "proposed"} and held.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(held[name], array)


def test_an_npz_file_needs_no_pickle(tmp_path: Path):
    write_arrays(tmp_path / "m.npz", ARRAYS, {"scheme": "proposed"})
    with np.load(tmp_path / "m.npz", allow_pickle=False) as held:
        assert json.loads(str(held["__metadata__"])) == {"scheme": "proposed"}
        np.testing.assert_array_equal(held["0.weight"], ARRAYS["0.weight"])


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_what_is_written_comes_back(tmp_path: Path, ending: str):
    write_arrays(tmp_path / f"m{ending}", ARRAYS, {})
    params = parameters_like(read_arrays(tmp_path / f"m{ending}"), LIKE, "m")
    np.testing.assert_array_equal(params[0]["weight"], ARRAYS["0.weight"])
    np.testing.assert_array_equal(params[0]["bias"], ARRAYS["0.bias"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"0.bias": None}, "m: has no array '0.bias', which the scenario's model has; it has '0.weight'"),
        ({"1.bias": np.zeros(2)}, "m: array '1.bias' is none of the scenario's model, which has '0.bias', '0.weight'"),
        (
            {"0.weight": np.zeros((3, 4))},
            r"m: '0.weight' has shape \[3, 4\], and in the scenario's model it has \[3, 2",
        ),
        ({"0.bias": np.array([1.0, np.nan])}, "m: '0.bias' holds values that are not finite numbers; give a trained"),
        ({"0.bias": np.array(["a", "b"])}, "m: '0.bias' holds values that are not finite numbers"),
    ],
    ids=["missing", "unknown", "shape", "nan", "text"],
)
def test_parameters_that_do_not_fit_are_refused(changes: dict, said: str):
    given = {name: array for name, array in {**ARRAYS, **changes}.items() if array is not None}
    with pytest.raises(ArgumentError, match=said):
        parameters_like(given, LIKE, "m")


@pytest.mark.parametrize("name", ["m.safetensors", "m.npz", "m.onnx", "gone.npz"])
def test_files_that_hold_no_model_are_refused_in_one_line(tmp_path: Path, name: str):
    if not name.startswith("gone"):
        (tmp_path / name).write_bytes(b"these are no parameters at all")
    with pytest.raises(ArgumentError) as caught:
        read_arrays(tmp_path / name)
    said = str(caught.value)
    assert said.startswith(str(tmp_path / name)) and "\n" not in said and ";" in said


def test_a_pickled_array_is_not_loaded(tmp_path: Path):
    np.savez(tmp_path / "m.npz", trap=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(ArgumentError, match="holds no model"):
        read_arrays(tmp_path / "m.npz")


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path):
    for ending in (".npz", ".safetensors"):
        with pytest.raises(OutputError, match="cannot be written"):
            write_arrays(tmp_path / "none" / f"m{ending}", ARRAYS, {})
