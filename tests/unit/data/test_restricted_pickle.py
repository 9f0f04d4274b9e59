from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from fairwave.data.restricted_pickle import array_of, load_pickle
from fairwave.errors import ScenarioError
from tests.unit.data.published_files import Hostile, Made, Named, array, pickled


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_arrays_come_back(kind, by_columns):
    values = np.random.default_rng(0).integers(0, 200, (4, 5)).astype(kind)
    read = load_pickle(pickled({"x": [array(values, by_columns=by_columns)], "y": (1, None, "z")}), "set")
    assert read["y"] == (1, None, "z")
    held = array_of(read["x"][0])
    assert held.dtype == kind and np.array_equal(held, values)


def test_an_array_of_this_numpy_comes_back():
    values = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(array_of(load_pickle(pickle.dumps(values, 2), "set")), values)


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_does_not_run(protocol, tmp_path: Path):
    marker = tmp_path / "ran"
    content = pickle.dumps({"x": Hostile(marker)}, protocol)
    with pytest.raises(ScenarioError, match=r"\(it asks for \S+open\); download it again"):
        load_pickle(content, "set")
    assert not marker.exists()
    pickle.loads(content)["x"].close()
    assert marker.exists()  # it would have


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("posix", "system"),
        ("numpy", "load"),
        ("numpy.core.multiarray", "_reconstruct.__globals__"),
        ("_codecs", "decode"),
        ("copyreg", "_reconstructor"),
        ("fairwave.data.restricted_pickle", "pickle"),
    ],
)
def test_names_outside_the_list_are_refused(module, name):
    with pytest.raises(ScenarioError, match="it asks for"):
        load_pickle(pickled(Made(Named(module, name), ("1",))), "set")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickled(array(np.arange(5)))[:-10],
        pickled(Made(Named("numpy", "dtype"), ("V8", 0, 1))),
        pickled(Made(Named("_codecs", "encode"), ("x", "rot13"))),
        pickled(Made(Named("numpy.core.multiarray", "_reconstruct"), (None, (10**12,), b"b"))),
        b"\x80\x02X\x01\x00\x00\x00aQ.",
        b"Pa\n.",
        b"\x80\x02Nr\xff\xff\xff\x7f.",
    ],
    ids=["empty", "text", "cut", "type", "encoding", "shape", "persistent", "persistent text", "large number"],
)
def test_what_is_no_pickle_of_arrays_is_one_line(content):
    with pytest.raises(ScenarioError, match=r"^set: not a pickle of arrays") as error:
        load_pickle(content, "set")
    assert "\n" not in str(error.value)


def test_something_else_in_the_place_of_an_array():
    with pytest.raises(ValueError, match="list where an array should be"):
        array_of([1, 2])
