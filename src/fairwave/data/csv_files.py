"""Data sets as two CSV files, `train.csv` and `test.csv`: a row per sample, a column `label`, the rest inputs."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from fairwave.errors import ScenarioError, did_you_mean
from fairwave.scenario.targets import Target

TRAIN = "train.csv"
LABEL = "label"
PIXEL = "pixel"
_CLASSES_WANTED = "classes 0, 1, ... or names that data.classes lists, or set data.target to 'number'"


def read_csv_folder(
    folder: Path, classes: tuple[str, ...] = (), strict: bool = True, target: Target = "class"
) -> dict[str, np.ndarray]:
    """The four arrays of a folder. Labels are whole numbers or, where `classes` are given, their names in that order.

    With target 'number' they are any numbers.

    Inputs whose columns are all called `pixel...` are bytes and are scaled to [0, 1]; all others are used as they are.
    Values never decide it: one record would then change what training makes of all others, which no clipping bounds.
    Nor do they decide which classes there are. A name that is not among them is refused or, if not `strict`, becomes a
    class after the last one. If not `strict`, no value is ever a reason to refuse the file: a cell that is no number
    becomes NaN, and training counts its record as zero.
    """
    train_inputs, train_labels, names = _read(folder / TRAIN, classes, strict, target)
    test_inputs, test_labels, test_names = _read(folder / "test.csv", classes, strict, target)
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


def _read(
    path: Path, classes: tuple[str, ...], strict: bool, target: Target
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    import pyarrow
    import pyarrow.csv

    try:
        # What one record holds must not decide what a column is. With classes given, labels are text in every file; if
        # not strict, everything is, until it is made numbers cell by cell.
        texts = ([LABEL] if classes else []) if strict else _heads(path)
        types = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(texts, pyarrow.string()))
        rows = pyarrow.csv.ParseOptions(invalid_row_handler=None if strict else lambda row: "skip")
        table = pyarrow.csv.read_csv(path, convert_options=types, parse_options=rows)
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; a CSV data set has {TRAIN} and test.csv") from None
    except (pyarrow.ArrowInvalid, OSError, csv.Error, UnicodeDecodeError) as error:
        raise ScenarioError(
            f"{path}: not a readable CSV file ({str(error).splitlines()[0]}); export it again"
        ) from None
    if table.column_names.count(LABEL) != 1:
        raise ScenarioError(f"{path}: no column '{LABEL}', or several; name the column of what is to be predicted so")
    if len(set(table.column_names)) < len(table.column_names):
        raise ScenarioError(f"{path}: two columns have the same name; rename one")
    inputs = table.drop_columns(LABEL)
    if table.num_rows == 0 or not inputs.column_names:
        raise ScenarioError(f"{path}: no samples or no inputs; give a row per sample and a column per input")
    for field in table.schema if strict else ():
        named, whole = field.name == LABEL and bool(classes), pyarrow.types.is_integer(field.type)
        measured = field.name != LABEL or target == "number"
        if not (named or whole or (measured and pyarrow.types.is_floating(field.type))):
            wanted = "numbers" if measured else _CLASSES_WANTED
            raise ScenarioError(f"{path}: column '{field.name}' holds {field.type}; give {wanted}")
        if table.column(field.name).null_count:
            raise ScenarioError(f"{path}: column '{field.name}' has empty cells; fill or drop those rows")
    # By way of double precision in any case: one value with a fraction must not change how others are rounded.
    columns = [(column.to_numpy() if strict else _cells(column)).astype(np.float64) for column in inputs.columns]
    labels = table.column(LABEL)
    if classes:
        numbers = _numbers(labels.to_pylist(), classes, strict, path)
    else:
        numbers = labels.to_numpy() if strict else _cells(labels)
    with np.errstate(over="ignore"):
        return np.stack(columns, axis=1).astype(np.float32), numbers, inputs.column_names


def _heads(path: Path) -> list[str]:
    """The names of a file's columns."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _cells(column: Any) -> np.ndarray:
    """The numbers that a column of text holds, NaN for each cell that is none."""
    import pyarrow

    try:
        return np.asarray(column.cast(pyarrow.float64()).to_numpy())  # quick, where every cell is a number
    except pyarrow.ArrowInvalid:
        return np.array([_number(cell) for cell in column.to_pylist()])


def _number(cell: str | None) -> float:
    try:
        return float(cell or "nan")
    except ValueError:
        return math.nan


def _numbers(names: list[str], classes: tuple[str, ...], strict: bool, path: Path) -> np.ndarray:
    """The numbers of classes from their names."""
    number = {name: place for place, name in enumerate(classes)}
    unknown = next((name for name in names if name not in number), None)
    if strict and unknown is not None:
        raise ScenarioError(f"{path}: label '{unknown}' is not in data.classes; {did_you_mean(unknown, classes)}")
    return np.array([number.get(name, len(classes)) for name in names])
