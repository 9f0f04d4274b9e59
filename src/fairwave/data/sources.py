"""Data sets: by name, and files in the formats that people have."""

from __future__ import annotations

import dataclasses
import importlib.resources
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np

from fairwave.data.csv_files import TRAIN, read_csv_folder
from fairwave.data.hugging_face import read_hugging_face
from fairwave.data.idx_files import read_idx_folder
from fairwave.errors import ScenarioError
from fairwave.extensions import DATA, listed
from fairwave.scenario.parameters import Data
from fairwave.scenario.partition_laws import Own

HUB = "hf:"
MOST_CLASSES = 1_000_000

PARTS = ("train_images", "train_labels", "test_images", "test_labels")
"""Arrays that every .npz data set has."""
USERS = "train_users"
"""The array of one that also says whose each training sample is."""


@dataclasses.dataclass(frozen=True)
class DataSet:
    """Inputs of shape (sample, ...) and integer labels. Bytes (uint8) are scaled to [0, 1] when they are used."""

    train_inputs: np.ndarray
    train_labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    users: np.ndarray | None = None
    """The person behind each training sample, as a whole number; None where nobody is known."""

    @property
    def num_classes(self) -> int:
        """Classes that occur in either part."""
        return int(max(self.train_labels.max(), self.test_labels.max())) + 1

    @property
    def num_features(self) -> int:
        """Values per sample."""
        return int(np.prod(self.train_inputs.shape[1:]))


@dataclasses.dataclass(frozen=True)
class DataSource:
    """A data set that scenarios can ask for by name."""

    extends: ClassVar[str] = "data"

    name: str
    summary: str
    """What it is, in a line."""
    load: Callable[[], DataSet]


def load(source: str, classes: tuple[str, ...] = (), *, strict: bool = True) -> DataSet:
    """The data set that a scenario names. `classes` are the names of the classes where a CSV file has names as labels.

    A name that is not among them is refused, or, if not `strict`, becomes a class after the last one: to refuse a
    device's own file for it would tell of one record.
    """
    if source in DATA:
        named: DataSource = DATA[source]
        return named.load()
    if source.startswith(HUB):
        return checked(read_hugging_face(source.removeprefix(HUB)), source)
    path = Path(source)
    if not path.exists():
        raise ScenarioError(
            f"data.source: no data set or file '{source}'; give a name ({listed(DATA)}), an .npz file, a folder of "
            "idx or CSV files, or 'hf:NAME'"
        )
    if path.is_dir():
        tables = (path / TRAIN).exists()
        return checked(read_csv_folder(path, classes, strict) if tables else read_idx_folder(path), source)
    if path.suffix == ".npz":
        return checked(read_npz(path), source)
    raise ScenarioError(
        f"data.source: unknown kind of file '{path.suffix}' ({source}); give an .npz file, or a folder with {TRAIN} "
        "and test.csv or with idx files"
    )


def load_for(data: Data, own: str | None = None) -> DataSet:
    """The data set of a scenario, or of one of its devices that has its `own`."""
    return load(own or data.source, data.classes, strict=not isinstance(data.partition, Own))


def _bundled_mnist() -> DataSet:
    with importlib.resources.as_file(importlib.resources.files("fairwave.data") / "mnist.npz") as path:
        return checked(read_npz(path), "mnist")


mnist = DataSource("mnist", "handwritten digits, 28 x 28 pixels, which come with the package", _bundled_mnist)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz data set."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            missing = [name for name in PARTS if name not in arrays]
            if missing:
                raise ScenarioError(f"{path}: no array '{missing[0]}'; an .npz data set holds {', '.join(PARTS)}")
            return {name: arrays[name] for name in (*PARTS, USERS) if name in arrays}
    except ScenarioError:
        raise
    except Exception as error:  # a damaged file can fail anywhere between zip, zlib, the header's parser and NumPy
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ScenarioError(f"{path}: not a readable .npz file ({reason}); re-export it") from None


def checked(arrays: dict[str, np.ndarray], source: str) -> DataSet:
    """The data set of these arrays, if they make one."""
    for part in ("train", "test"):
        inputs, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if len(inputs) == 0 or len(inputs) != len(labels) or labels.ndim != 1:
            raise ScenarioError(
                f"{source}: {len(inputs)} {part} inputs with labels of shape {labels.shape}; give one label per input"
            )
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= MOST_CLASSES:
            raise ScenarioError(f"{source}: {part} labels are not classes 0, 1, ...; number the classes from 0")
        if not (np.issubdtype(inputs.dtype, np.number) or inputs.dtype == bool):
            raise ScenarioError(f"{source}: {part} inputs are {inputs.dtype}, not numbers; convert them")
        if np.issubdtype(inputs.dtype, np.floating) and not np.isfinite(inputs).all():
            raise ScenarioError(f"{source}: {part} inputs hold values that are not finite; clean them")
    train, test = arrays["train_images"].shape[1:], arrays["test_images"].shape[1:]
    if train != test:
        raise ScenarioError(f"{source}: train inputs of shape {train}, test inputs of {test}; make them equal")
    users = arrays.get(USERS)
    if users is not None and (
        users.shape != arrays["train_labels"].shape or not np.issubdtype(users.dtype, np.integer)
    ):
        raise ScenarioError(
            f"{source}: {USERS} of shape {users.shape} and type {users.dtype}; give a whole number per training sample"
        )
    return DataSet(
        arrays["train_images"],
        arrays["train_labels"].astype(np.int32),
        arrays["test_images"],
        arrays["test_labels"].astype(np.int32),
        users,
    )
