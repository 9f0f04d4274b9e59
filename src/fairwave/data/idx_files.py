"""Data sets as four idx files, the format in which MNIST and its kin are published."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from fairwave.data.bounded_gzip import unpacked
from fairwave.errors import ScenarioError

_TYPES = {0x08: np.uint8, 0x09: np.int8, 0x0B: np.int16, 0x0C: np.int32, 0x0D: np.float32, 0x0E: np.float64}
NAMES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}


def read_idx_folder(folder: Path) -> dict[str, np.ndarray]:
    """The four arrays of a folder; the files may be gzipped, and their names may have a dot before 'idx'."""
    arrays = {}
    for part, name in NAMES.items():
        spelled = (name, name.replace("-idx", ".idx"))
        places = [folder / f"{each}{ending}" for each in spelled for ending in ("", ".gz")]
        found = [path for path in places if path.exists()]
        if not found:
            raise ScenarioError(f"{folder}: no file {name} or {name}.gz; an idx data set has the four files of MNIST")
        arrays[part] = read_idx(found[0].read_bytes(), str(found[0]))
    return arrays


def read_idx(packed: bytes, name: str) -> np.ndarray:
    """One array in the idx format: two zero bytes, type, number of axes, their lengths (big endian), values.

    A file whose name ends in .gz is unpacked first.
    """
    try:
        content = unpacked(packed) if name.endswith(".gz") else packed
        zero, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        if zero != 0 or kind not in _TYPES:
            raise ValueError("the first bytes are not those of an idx file")
        dtype = np.dtype(_TYPES[kind])
        return np.frombuffer(content, dtype.newbyteorder(">"), offset=4 + 4 * axes).reshape(shape).astype(dtype)
    except (OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise ScenarioError(f"{name}: not a valid idx file ({error}); download or export it again") from None
