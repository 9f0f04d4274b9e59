"""A run's results as files for other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwave.errors import OutputError, system_reason

if TYPE_CHECKING:
    import pyarrow
    import xarray as xr

ENDINGS = (".nc", ".parquet", ".csv")
DIMS = ("scheme", "seed", "round", "device")
PRIVATE = "private"
"""The attribute of a variable, or metadata of a column, that says whether it is private."""


def result_rows(results: xr.Dataset) -> pyarrow.Table:
    """A row per scheme, seed, round and device; values of a whole round are repeated for its devices."""
    import pyarrow
    import xarray as xr

    shape = tuple(results.sizes[dim] for dim in DIMS)
    columns = {}
    for position, dim in enumerate(DIMS):
        along = results[dim].values.reshape([-1 if axis == position else 1 for axis in range(len(DIMS))])
        columns[dim] = np.broadcast_to(along, shape).ravel()
    empty = xr.DataArray(np.empty(shape), dims=DIMS)
    for name in (*results.data_vars, *(name for name in results.coords if name not in DIMS)):
        if set(results[name].dims) <= set(DIMS):
            values = results[name].broadcast_like(empty).transpose(*DIMS).values.ravel()
            columns[str(name)] = (
                _in_words(values, results[name].attrs) if "flag_masks" in results[name].attrs else values
            )
    arrays = {name: pyarrow.array(values) for name, values in columns.items()}
    marks = {name: results[name].attrs.get(PRIVATE) for name in arrays}
    fields = [
        pyarrow.field(name, array.type, metadata={PRIVATE: marks[name]} if marks[name] else None)
        for name, array in arrays.items()
    ]
    return pyarrow.table(list(arrays.values()), schema=pyarrow.schema(fields))


def with_marks(results: xr.Dataset, not_private: Mapping[str, str]) -> xr.Dataset:
    """The results with an attribute on every variable that no proof covers: that it is not private, and why."""
    marked = results.copy()
    for name, reason in not_private.items():
        if name in marked.variables:
            marked[name].attrs = {**marked[name].attrs, PRIVATE: f"no: {reason}"}
    return marked


def marked_columns(results: xr.Dataset) -> list[str]:
    """The variables that are marked as not private."""
    return [str(name) for name in results.variables if PRIVATE in results[name].attrs]


def _in_words(flags: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Flags by their names, separated by spaces; nothing where none is set."""
    names = str(attributes["flag_meanings"]).split()
    masks = np.atleast_1d(attributes["flag_masks"]).astype(int).tolist()
    known = {
        int(value): " ".join(name for name, mask in zip(names, masks, strict=True) if int(value) & mask)
        for value in np.unique(np.nan_to_num(flags))
    }
    return np.array([known[int(value)] for value in np.nan_to_num(flags)], dtype=str)


def export_results(results: xr.Dataset, path: Path) -> None:
    """Write the results; the ending of the file's name says in which format."""
    import pyarrow.csv
    import pyarrow.parquet

    try:
        match path.suffix.lower():
            case ".nc":
                results.to_netcdf(path, engine="h5netcdf")
            case ".parquet":
                pyarrow.parquet.write_table(result_rows(results), path)
            case ".csv":
                rows = result_rows(results)
                with path.open("wb") as stream:  # Arrow has words of its own for a path that it cannot open
                    pyarrow.csv.write_csv(rows, stream)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({system_reason(error)}); choose a writable folder") from None
