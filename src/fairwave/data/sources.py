"""Data sets: the bundled MNIST, and files in the formats that people have."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.resources
import struct
import zipfile
from pathlib import Path

import numpy as np

from fairwave.errors import ScenarioError

_IDX_TYPES = {0x08: np.uint8, 0x09: np.int8, 0x0B: np.int16, 0x0C: np.int32, 0x0D: np.float32, 0x0E: np.float64}
_PARTS = ("train_images", "train_labels", "test_images", "test_labels")
_IDX_NAMES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


@dataclasses.dataclass(frozen=True)
class DataSet:
    """Inputs of shape (sample, ...) and integer labels. Integer inputs are scaled to [0, 1] when they are used."""

    train_inputs: np.ndarray
    train_labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray

    @property
    def num_classes(self) -> int:
        """Classes that occur in either part."""
        return int(max(self.train_labels.max(), self.test_labels.max())) + 1

    @property
    def num_features(self) -> int:
        """Values per sample."""
        return int(np.prod(self.train_inputs.shape[1:]))


def load(source: str) -> DataSet:
    """The data set that a scenario names: 'mnist', an .npz file, or a folder of idx files as MNIST comes in."""
    if source == "mnist":
        with importlib.resources.as_file(importlib.resources.files("fairwave.data") / "mnist.npz") as path:
            return _checked(_from_npz(path), source)
    path = Path(source)
    if not path.exists():
        raise ScenarioError(f"data.source: no data set or file '{source}'; give 'mnist', an .npz file or an idx folder")
    if path.is_dir():
        return _checked(_from_idx_folder(path), source)
    if path.suffix == ".npz":
        return _checked(_from_npz(path), source)
    raise ScenarioError(
        f"data.source: unknown kind of file '{path.suffix}' ({source}); give .npz or a folder of idx files"
    )


def _from_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in _PARTS if name not in arrays]
            if missing:
                raise ScenarioError(f"{path}: no array '{missing[0]}'; an .npz data set holds {', '.join(_PARTS)}")
            return {name: arrays[name] for name in _PARTS}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ScenarioError(f"{path}: not a readable .npz file ({str(error).splitlines()[0]}); re-export it") from None


def _from_idx_folder(folder: Path) -> dict[str, np.ndarray]:
    arrays = {}
    for part, name in _IDX_NAMES.items():
        found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
        if not found:
            raise ScenarioError(f"{folder}: no file {name} or {name}.gz; an idx data set has the four files of MNIST")
        arrays[part] = _read_idx(found[0])
    return arrays


def _read_idx(path: Path) -> np.ndarray:
    """One array in the idx format: two zero bytes, type, number of axes, their lengths (big endian), values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        zero, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        if zero != 0 or kind not in _IDX_TYPES:
            raise ValueError("the first bytes are not those of an idx file")
        dtype = np.dtype(_IDX_TYPES[kind])
        return np.frombuffer(content, dtype.newbyteorder(">"), offset=4 + 4 * axes).reshape(shape).astype(dtype)
    except (OSError, EOFError, ValueError, struct.error) as error:
        raise ScenarioError(f"{path}: not a valid idx file ({error}); download or export it again") from None


def _checked(arrays: dict[str, np.ndarray], source: str) -> DataSet:
    for part in ("train", "test"):
        inputs, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if len(inputs) == 0 or len(inputs) != len(labels) or labels.ndim != 1:
            raise ScenarioError(
                f"{source}: {len(inputs)} {part} inputs with labels of shape {labels.shape}; give one label per input"
            )
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
            raise ScenarioError(f"{source}: {part} labels are not classes 0, 1, ...; number the classes from 0")
        if np.issubdtype(inputs.dtype, np.floating) and not np.isfinite(inputs).all():
            raise ScenarioError(f"{source}: {part} inputs hold values that are not finite; clean them")
    return DataSet(
        arrays["train_images"],
        arrays["train_labels"].astype(np.int32),
        arrays["test_images"],
        arrays["test_labels"].astype(np.int32),
    )
