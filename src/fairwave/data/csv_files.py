"""Data sets as two CSV files, `train.csv` and `test.csv`: a row per sample, a column `label`, the rest inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairwave.errors import ScenarioError

TRAIN = "train.csv"
LABEL = "label"
PIXEL = "pixel"


def read_csv_folder(folder: Path) -> dict[str, np.ndarray]:
    """The four arrays of a folder.

    Inputs whose columns are all called `pixel...` are bytes and are scaled to [0, 1]; all others are used as they are.
    Values never decide it: one record would then change what training makes of all others, which no clipping bounds.
    """
    train_inputs, train_labels, names = _read(folder / TRAIN)
    test_inputs, test_labels, test_names = _read(folder / "test.csv")
    if sorted(names) != sorted(test_names):
        odd = sorted(set(names) ^ set(test_names))[0]
        raise ScenarioError(f"{folder}: column '{odd}' is in only one of {TRAIN} and test.csv; make them equal")
    test_inputs = test_inputs[:, [test_names.index(name) for name in names]]
    if all(name.lower().startswith(PIXEL) for name in names):
        train_inputs, test_inputs = train_inputs / np.float32(255), test_inputs / np.float32(255)
    return {
        "train_images": train_inputs,
        "train_labels": train_labels,
        "test_images": test_inputs,
        "test_labels": test_labels,
    }


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
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
    if len(set(table.column_names)) < len(table.column_names):
        raise ScenarioError(f"{path}: two columns have the same name; rename one")
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
    return np.stack(columns, axis=1), table.column(LABEL).to_numpy(), inputs.column_names
