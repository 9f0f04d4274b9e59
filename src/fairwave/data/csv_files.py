"""Data sets as two CSV files, `train.csv` and `test.csv`: a row per sample, a column `label`, the rest inputs."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

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
    """Inputs, labels and the names of the inputs' columns."""
    try:
        table = _columns(path, classes, target) if strict else _columns_line_by_line(path)
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; a CSV data set has {TRAIN} and test.csv") from None
    labels = table.pop(LABEL)
    if labels.size == 0 or not table:
        raise ScenarioError(f"{path}: no samples or no inputs; give a row per sample and a column per input")
    if classes:
        labels = _numbers(labels.tolist(), classes, strict, path)
    elif not strict:
        labels = _cells(labels)
    # By way of double precision in any case: one value with a fraction must not change how others are rounded.
    columns = [(column if strict else _cells(column)).astype(np.float64) for column in table.values()]
    with np.errstate(over="ignore"):
        return np.stack(columns, axis=1).astype(np.float32), labels, list(table)


def _columns(path: Path, classes: tuple[str, ...], target: Target) -> dict[str, np.ndarray]:
    """The columns of a file that holds what it should; anything else is refused."""
    import pyarrow
    import pyarrow.csv

    # With classes given, labels are text in every file: what one record holds must not decide what a column is.
    types = pyarrow.csv.ConvertOptions(column_types={LABEL: pyarrow.string()} if classes else None)
    try:
        table = pyarrow.csv.read_csv(path, convert_options=types)
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ScenarioError(
            f"{path}: not a readable CSV file ({str(error).splitlines()[0]}); export it again"
        ) from None
    _check_heads(path, table.column_names)
    for field in table.schema if table.num_rows else ():
        named, whole = field.name == LABEL and bool(classes), pyarrow.types.is_integer(field.type)
        measured = field.name != LABEL or target == "number"
        if not (named or whole or (measured and pyarrow.types.is_floating(field.type))):
            wanted = "numbers" if measured else _CLASSES_WANTED
            raise ScenarioError(f"{path}: column '{field.name}' holds {field.type}; give {wanted}")
        if table.column(field.name).null_count:
            raise ScenarioError(f"{path}: column '{field.name}' has empty cells; fill or drop those rows")
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _columns_line_by_line(path: Path) -> dict[str, np.ndarray]:
    """The columns of a device's own file as text. A line that is no row of the table is a row of empty cells.

    Every line is a record of its own: nothing in it, such as a quote that is never closed, reaches another one.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = [line for line in re.split(r"\r\n|\n|\r", file.read()) if line]
    heads = _row(lines[0]) if lines else []
    _check_heads(path, heads)
    rows = [row if len(row) == len(heads) else [""] * len(heads) for row in map(_row, lines[1:])]
    return {name: np.array([row[place] for row in rows], object) for place, name in enumerate(heads)}


def _row(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _check_heads(path: Path, heads: list[str]) -> None:
    if heads.count(LABEL) != 1:
        raise ScenarioError(f"{path}: no column '{LABEL}', or several; name the column of what is to be predicted so")
    if len(set(heads)) < len(heads):
        raise ScenarioError(f"{path}: two columns have the same name; rename one")


def _cells(texts: np.ndarray) -> np.ndarray:
    """The numbers that a column of text holds, NaN for each cell that is none."""
    try:
        return texts.astype(np.float64)  # quick, where every cell is a number
    except ValueError:
        return np.array([_number(cell) for cell in texts])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _numbers(names: list[str], classes: tuple[str, ...], strict: bool, path: Path) -> np.ndarray:
    """The numbers of classes from their names."""
    number = {name: place for place, name in enumerate(classes)}
    unknown = next((name for name in names if name not in number), None)
    if strict and unknown is not None:
        raise ScenarioError(f"{path}: label '{unknown}' is not in data.classes; {did_you_mean(unknown, classes)}")
    return np.array([number.get(name, len(classes)) for name in names])
