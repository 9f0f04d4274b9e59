"""Data sets as two CSV files, `train.csv` and `test.csv`: a row per sample, a column `label`, the rest inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairwave.errors import ScenarioError

TRAIN = "train.csv"
LABEL = "label"


def read_csv_folder(folder: Path) -> dict[str, np.ndarray]:
    """The four arrays of a folder; whole inputs from 0 to 255 are taken as bytes, which training scales to [0, 1]."""
    train_inputs, train_labels = _read(folder / TRAIN)
    test_inputs, test_labels = _read(folder / "test.csv")
    if train_inputs.shape[1] != test_inputs.shape[1]:
        raise ScenarioError(
            f"{folder}: {train_inputs.shape[1]} inputs in {TRAIN}, {test_inputs.shape[1]} in test.csv; make them equal"
        )
    both = (train_inputs, test_inputs)
    if all((part == np.floor(part)).all() and part.min() >= 0 and part.max() <= 255 for part in both):
        train_inputs, test_inputs = (part.astype(np.uint8) for part in both)
    return {
        "train_images": train_inputs,
        "train_labels": train_labels,
        "test_images": test_inputs,
        "test_labels": test_labels,
    }


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow
    import pyarrow.csv

    try:
        table = pyarrow.csv.read_csv(path)
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; a CSV data set has {TRAIN} and test.csv") from None
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ScenarioError(
            f"{path}: not a readable CSV file ({str(error).splitlines()[0]}); export it again"
        ) from None
    if table.column_names.count(LABEL) != 1:
        raise ScenarioError(f"{path}: no column '{LABEL}', or several; name the column of classes so")
    inputs = table.drop_columns(LABEL)
    for field in table.schema:
        numeric = pyarrow.types.is_integer(field.type) or pyarrow.types.is_floating(field.type)
        if not numeric or (field.name == LABEL and not pyarrow.types.is_integer(field.type)):
            raise ScenarioError(
                f"{path}: column '{field.name}' holds {field.type}; give numbers, and classes 0, 1, ..."
            )
        if table.column(field.name).null_count:
            raise ScenarioError(f"{path}: column '{field.name}' has empty cells; fill or drop those rows")
    if table.num_rows == 0 or not inputs.column_names:
        raise ScenarioError(f"{path}: no samples or no inputs; give a row per sample and a column per input")
    columns = [column.to_numpy().astype(np.float32) for column in inputs.columns]
    return np.stack(columns, axis=1), table.column(LABEL).to_numpy()
