"""Per-device values from CSV and Parquet files, checked before anyone computes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairwave.errors import ScenarioError, did_you_mean
from fairwave.scenario.quantity import FloatColumn


class TableFile:
    """One opened file of per-device columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table = _read(path)
        names: list[str] = list(self._table.column_names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ScenarioError(f"{path}: column '{twice[0]}' stands twice; keep one")
        if "" in names:
            raise ScenarioError(f"{path}: column {names.index('') + 1} has no name; is there a comma too many?")
        if len(names) == 1 and ";" in names[0]:
            raise ScenarioError(f"{path}: columns are separated by ';'; separate them by commas")
        if self._table.num_rows == 0:
            raise ScenarioError(f"{path}: no rows; give one row per device")
        self.names = names
        self.num_rows = int(self._table.num_rows)

    def column(self, name: str) -> FloatColumn:
        """The values of one column, all finite; ScenarioError names the first row that is not."""
        import pyarrow.types

        if name not in self.names:
            raise ScenarioError(f"{self.path}: no column '{name}'; {did_you_mean(name, self.names)}")
        column = self._table.column(name)
        is_number = pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)
        if pyarrow.types.is_null(column.type):
            raise ScenarioError(f"{self.path}: column '{name}' is blank; fill it in or leave it out")
        if not is_number:
            raise ScenarioError(f"{self.path}: column '{name}' is not numeric; give plain numbers in SI units")
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            row = int(bad[0])
            raise ScenarioError(
                f"{self.path}: column '{name}', row {row + 1}: the value is blank or not finite; give a number"
            )
        return values

    def labels(self, name: str) -> list[str]:
        """The values of one column as names: each given, printable and different."""
        labels = ["" if value is None else value for value in self._table.column(name).to_pylist()]
        seen: set[str] = set()
        for row, label in enumerate(labels):
            if isinstance(label, bytes):
                raise ScenarioError(
                    f"{self.path}: column '{name}', row {row + 1}: not UTF-8 text; save the file as UTF-8"
                )
            text = str(label)
            if not text or not text.isprintable():
                raise ScenarioError(
                    f"{self.path}: column '{name}', row {row + 1}: {text!r} is no name; give a printable one"
                )
            if text in seen:
                raise ScenarioError(f"{self.path}: column '{name}', row {row + 1}: '{text}' stands twice; rename one")
            seen.add(text)
        return [str(label) for label in labels]


def _read(path: Path) -> Any:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ScenarioError(f"{path}: unknown kind of file '{path.suffix}'; give .csv or .parquet")
    try:
        if path.suffix.lower() == ".parquet":
            return _named(pyarrow.parquet.read_table(path))
        with path.open("rb") as stream:
            opening = stream.read(2)
        if not opening:
            raise ScenarioError(f"{path}: the file is empty; the first line names the columns")
        if opening in (b"\xff\xfe", b"\xfe\xff"):
            raise ScenarioError(f"{path}: not UTF-8 text; save the file as UTF-8")
        return _named(pyarrow.csv.read_csv(path))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror or error}); give a readable file") from None
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0]
        raise ScenarioError(
            f"{path}: not a valid {path.suffix[1:]} file ({problem}); correct or re-export it"
        ) from None


def _named(table: Any) -> Any:
    """The table with its names trimmed of blanks; names that are not text fail here, where it is caught."""
    return table.rename_columns([name.strip() for name in table.column_names])
