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
from fairwave.scenario.targets import Target

HUB = "hf:"
MOST_CLASSES = 1_000_000

PARTS = ("train_images", "train_labels", "test_images", "test_labels")
"""Arrays that every .npz data set has."""
USERS = "train_users"
"""The array of one that also says whose each training sample is."""


@dataclasses.dataclass(frozen=True)
class DataSet:
    """Inputs of shape (sample, ...), and labels: whole numbers that are classes, or floats that are to be predicted.

    Inputs that are bytes (uint8) are scaled to [0, 1] when they are used; labels never are.
    """

    train_inputs: np.ndarray
    train_labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    users: np.ndarray | None = None
    """The person behind each training sample, as a whole number; None where nobody is known."""

    @property
    def target(self) -> Target:
        """What its labels are."""
        return "number" if np.issubdtype(self.train_labels.dtype, np.floating) else "class"

    def check_target(self, wanted: Target, source: str) -> None:
        """Refuse a data set whose labels are not what the scenario says."""
        if self.target != wanted:
            kind = "numbers" if self.target == "number" else "classes"
            raise ScenarioError(
                f"data.target: '{wanted}', but the labels of {source} are {kind}; set it to '{self.target}', with a "
                "learning.model that predicts them"
            )

    @property
    def num_classes(self) -> int:
        """Classes that occur in either part; for data whose labels are classes."""
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


def load(source: str, classes: tuple[str, ...] = (), *, strict: bool = True, target: Target = "class") -> DataSet:
    """The data set that a scenario names. `classes` are the names of the classes where a CSV file has names as labels.

    If not `strict`, no value is a reason to refuse the data, for that would tell of one record: a class that cannot be
    is a class after the last one, and a number that is not finite stays, so that training counts its record as zero.
    `target` says what labels are; with 'number', whole numbers in a file are numbers like all others, while a data set
    that has a name says itself what its labels are.
    """
    if source in DATA:
        named: DataSet = DATA[source].load()
        named.check_target(target, f"'{source}'")
        return named
    if source.startswith(HUB):
        return checked(read_hugging_face(source.removeprefix(HUB)), source, target, strict=strict)
    path = Path(source)
    if not path.exists():
        raise ScenarioError(
            f"data.source: no data set or file '{source}'; give a name ({listed(DATA)}), an .npz file, a folder of "
            "idx or CSV files, or 'hf:NAME'"
        )
    if path.is_dir():
        tables = (path / TRAIN).exists()
        arrays = read_csv_folder(path, classes, strict, target) if tables else read_idx_folder(path)
        return checked(arrays, source, target, strict=strict)
    if path.suffix == ".npz":
        return checked(read_npz(path), source, target, strict=strict)
    raise ScenarioError(
        f"data.source: unknown kind of file '{path.suffix}' ({source}); give an .npz file, or a folder with {TRAIN} "
        "and test.csv or with idx files"
    )


def load_for(data: Data, own: str | None = None) -> DataSet:
    """The data set of a scenario, or of one of its devices that has its `own`."""
    strict = not isinstance(data.partition, Own)
    return load(own or data.source, data.classes, strict=strict, target=data.target)


def _bundled_mnist() -> DataSet:
    with importlib.resources.as_file(importlib.resources.files("fairwave.data") / "mnist.npz") as path:
        return checked(read_npz(path), "mnist")


mnist = DataSource(
    "mnist", "This set has handwritten digits of 28 x 28 pixels and comes with the package.", _bundled_mnist
)


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


def checked(arrays: dict[str, np.ndarray], source: str, target: Target = "class", *, strict: bool = True) -> DataSet:
    """The data set of these arrays, if they make one; values are looked at only if `strict`."""
    labels_of = {}
    for part in ("train", "test"):
        inputs, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if len(inputs) == 0 or len(inputs) != len(labels) or labels.ndim != 1:
            raise ScenarioError(
                f"{source}: {len(inputs)} {part} inputs with labels of shape {labels.shape}; give one label per input"
            )
        labels_of[part] = (_numbers if target == "number" else _classes)(labels, f"{source}: {part} labels", strict)
        if not (np.issubdtype(inputs.dtype, np.number) or inputs.dtype == bool):
            raise ScenarioError(f"{source}: {part} inputs are {inputs.dtype}, not numbers; convert them")
        if strict and np.issubdtype(inputs.dtype, np.floating) and not np.isfinite(inputs).all():
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
    return DataSet(arrays["train_images"], labels_of["train"], arrays["test_images"], labels_of["test"], users)


def _classes(labels: np.ndarray, whose: str, strict: bool) -> np.ndarray:
    if not strict and np.issubdtype(labels.dtype, np.number):
        possible = (labels >= 0) & (labels < MOST_CLASSES) & (labels == np.floor(labels))
        return np.where(possible, labels, MOST_CLASSES - 1).astype(np.int32)
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= MOST_CLASSES:
        raise ScenarioError(
            f"{whose} are not classes 0, 1, ...; number the classes from 0, or set data.target to 'number'"
        )
    return labels.astype(np.int32)


def _numbers(labels: np.ndarray, whose: str, strict: bool) -> np.ndarray:
    if not (np.issubdtype(labels.dtype, np.integer) or np.issubdtype(labels.dtype, np.floating)):
        raise ScenarioError(f"{whose} are {labels.dtype}, not numbers; convert them, or set data.target to 'class'")
    with np.errstate(over="ignore"):
        # By way of double precision in any case: one label with a fraction must not change how others are rounded.
        numbers = labels.astype(np.float64).astype(np.float32)
    if strict and not np.isfinite(numbers).all():
        raise ScenarioError(f"{whose} hold values that are not finite in single precision; clean or rescale them")
    return numbers
