"""Data sets by name on the Hugging Face hub, or in a local folder that its library reads. An extra: `fairwave[hub]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairwave.errors import ScenarioError


def read_hugging_face(name: str) -> dict[str, np.ndarray]:
    """The splits 'train' and 'test': one column of images or vectors, one of classes."""
    try:
        import datasets
    except ImportError:
        raise ScenarioError(
            f"data.source: 'hf:{name}' needs the library 'datasets'; install fairwave[hub], or give local files"
        ) from None
    try:
        splits = datasets.load_dataset(name)
    except Exception as error:  # its errors have no common base: missing set, no network, bad files, bad arguments
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ScenarioError(f"data.source: 'hf:{name}' cannot be loaded ({reason}); check the name") from None
    arrays = {}
    for split in ("train", "test"):
        if split not in splits:
            raise ScenarioError(
                f"data.source: 'hf:{name}' has no split '{split}', only {', '.join(splits)}; choose another"
            )
        inputs, labels = _columns(splits[split], name)
        rows = splits[split].with_format("numpy")
        arrays[f"{split}_images"] = np.stack([np.asarray(value) for value in rows[inputs][:]])
        arrays[f"{split}_labels"] = np.asarray(rows[labels][:])
    return arrays


def _columns(split: Any, name: str) -> tuple[str, str]:
    """The columns of inputs and of classes, found by the names in common use."""
    found = []
    for kind, names in (
        ("inputs", ("image", "img", "inputs", "features")),
        ("classes", ("label", "labels", "fine_label")),
    ):
        known = [column for column in names if column in split.column_names]
        if not known:
            raise ScenarioError(
                f"data.source: 'hf:{name}' has no column of {kind} ({', '.join(names)}), only "
                f"{', '.join(split.column_names)}; rename one, or export it to .npz"
            )
        found.append(known[0])
    return found[0], found[1]
