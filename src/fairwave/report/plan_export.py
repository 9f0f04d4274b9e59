"""A plan as rows: JSON for people and programs, CSV and Parquet for many devices."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fairwave.errors import OutputError, system_reason

if TYPE_CHECKING:
    import pyarrow
    import xarray as xr

ENDINGS = (".csv", ".json", ".nc", ".parquet")


def plan_rows(plan: xr.Dataset) -> pyarrow.Table:
    """One row per policy and device."""
    import pyarrow

    num_devices = plan.sizes["device"]
    names = [str(name) for name in plan["policy"].values]
    columns: dict[str, Any] = {
        "policy": pyarrow.array([name for name in names for _ in range(num_devices)]),
        "device": pyarrow.array(list(plan["device"].values.tolist()) * len(names)),
    }
    for name in ("distance_m", "path_loss_db"):
        columns[name] = pyarrow.array(plan[name].values.tolist() * len(names))
    for variable_name, variable in plan.data_vars.items():
        if variable.dims == ("policy", "device"):
            columns[str(variable_name)] = pyarrow.array(variable.values.ravel())
    return pyarrow.table(columns)


def plan_json(plan: xr.Dataset, fairness: dict[str, dict[str, float]]) -> str:
    """The whole plan as JSON; a number that does not exist (a device always in outage) is null."""
    rows = plan_rows(plan).to_pylist()
    policies = {
        name: {
            "fairness": {key: _number(value) for key, value in summary.items()},
            "devices": [
                {key: _number(value) for key, value in row.items() if key != "policy"}
                for row in rows
                if row["policy"] == name
            ],
        }
        for name, summary in fairness.items()
    }
    return json.dumps({**plan.attrs, "policies": policies}, indent=1, allow_nan=False)


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(plan: xr.Dataset, stream: TextIO) -> None:
    """All rows as CSV, with a header."""
    import pyarrow
    import pyarrow.csv

    sink = pyarrow.BufferOutputStream()
    pyarrow.csv.write_csv(plan_rows(plan), sink)
    stream.write(sink.getvalue().to_pybytes().decode("utf-8"))


def export_plan(plan: xr.Dataset, fairness: dict[str, dict[str, float]], path: Path) -> None:
    """Write the plan; the ending of the file's name says in which format."""
    import pyarrow.parquet

    try:
        match path.suffix.lower():
            case ".parquet":
                pyarrow.parquet.write_table(plan_rows(plan), path)
            case ".csv":
                with path.open("w", encoding="utf-8") as stream:
                    write_csv(plan, stream)
            case ".json":
                path.write_text(plan_json(plan, fairness), encoding="utf-8")
            case ".nc":
                plan.to_netcdf(path, engine="h5netcdf")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({system_reason(error)}); choose a writable folder") from None
