"""The points of a sweep as rows, one for each point, scheme and seed; and as files for the reader's own analysis."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.errors import OutputError, system_reason
from fairwave.metrics.fairness import fairness_summary
from fairwave.report.device_losses import LAST
from fairwave.report.statistics import has_classes, mean_over_rounds, rounds_reached

if TYPE_CHECKING:
    import pyarrow
    import xarray as xr

FILES = ("points.csv", "points.parquet")


@dataclasses.dataclass(frozen=True)
class Axis:
    """A parameter that is swept."""

    name: str
    law: str = ""
    """The law by which its values are drawn; none where they are given."""

    @property
    def scattered(self) -> bool:
        """Nearly every draw has a value of its own."""
        return self.law in ("uniform", "log_uniform")


@dataclasses.dataclass(frozen=True)
class Row:
    """What one scheme did with one seed at one point."""

    run: str
    values: Mapping[str, float | str]
    """Values of the parameters that are swept."""
    scheme: str
    seed: int
    rounds: int
    energy_j: float
    """Per device and round: the mean over devices."""
    energy_std_j: float
    """The std over devices."""
    received_loss: float
    """Mean loss of the received copies, over devices and the last rounds."""
    test_accuracy: float
    """Test accuracy of the access point's model, in the last round; NaN for a model that predicts numbers."""
    test_rmse: float | None = None
    """Its root mean squared error on test data; None for a model of classes."""


def measured(run: str, values: Mapping[str, float | str], results: xr.Dataset) -> Iterator[Row]:
    """The rows of one run."""
    energy, reached = mean_over_rounds(results, "energy_j"), rounds_reached(results)
    for scheme in map(str, results["scheme"].values):
        for seed in map(int, results["seed"].values):
            one = {"scheme": scheme, "seed": seed}
            rounds = int(reached.sel(one))
            spread = fairness_summary(energy.sel(one).values)
            done = results.sel(one).isel(round=slice(rounds))
            yield Row(
                run,
                values,
                scheme,
                seed,
                rounds,
                spread["mean"],
                spread["std"],
                float(done["received_loss"].isel(round=slice(-LAST, None)).mean()),
                float(done["test_accuracy"].isel(round=-1)),
                None if has_classes(results) else float(done["test_rmse"].isel(round=-1)),
            )


def point_rows(rows: Sequence[Row]) -> pyarrow.Table:
    """All rows, a column for each parameter; one that has words among its values is text throughout."""
    import pyarrow

    columns: dict[str, Sequence[object]] = {"run": [row.run for row in rows]}
    for name in rows[0].values:
        values = [row.values[name] for row in rows]
        columns[name] = list(map(str, values)) if any(isinstance(value, str) for value in values) else values
    for field in dataclasses.fields(Row):
        known = [getattr(row, field.name) for row in rows]
        if field.name not in ("run", "values") and any(value is not None for value in known):
            columns[field.name] = known
    return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})


def write_points(rows: Sequence[Row], folder: Path) -> None:
    """CSV for people and spreadsheets, Parquet for programs."""
    import pyarrow.csv
    import pyarrow.parquet

    table = point_rows(rows)
    try:
        pyarrow.csv.write_csv(table, folder / FILES[0])
        pyarrow.parquet.write_table(table, folder / FILES[1])
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({system_reason(error)}); choose a writable folder") from None


def levels(rows: Sequence[Row], name: str) -> list[float | str]:
    """The values of a parameter: numbers in their order, words in that of the file."""
    found = list(dict.fromkeys(row.values[name] for row in rows))
    if any(isinstance(value, str) for value in found):
        return found
    return [value.item() for value in np.sort(np.array(found))]
