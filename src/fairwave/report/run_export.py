"""A run's results as files for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.errors import OutputError

if TYPE_CHECKING:
    import pyarrow
    import xarray as xr

ENDINGS = (".nc", ".parquet", ".csv")
DIMS = ("scheme", "seed", "round", "device")


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
    for name in (*results.data_vars, "distance_m", "path_loss_db"):
        if set(results[name].dims) <= set(DIMS):
            columns[str(name)] = results[name].broadcast_like(empty).transpose(*DIMS).values.ravel()
    return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})


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
                pyarrow.csv.write_csv(result_rows(results), path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); choose a writable folder") from None
