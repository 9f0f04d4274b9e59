"""Per-device parameters resolved to numbers: a scalar for all devices, or an array with one value each."""

from __future__ import annotations

import typing
from pathlib import Path

import numpy as np
from pydantic.fields import FieldInfo

from fairwave.errors import ScenarioError, did_you_mean
from fairwave.scenario.group import Group
from fairwave.scenario.loading import build
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.quantity import Column, FloatColumn, Limit, PerDevice
from fairwave.scenario.table_files import TableFile

DISTANCE = "distance_m"
LABEL = "device"


def _limit_each(field: FieldInfo) -> Limit | None:
    """The limit on a field that may hold one value per device, or None for other fields."""
    pending: list[object] = [*field.metadata, field.annotation]
    limit, per_device = None, False
    while pending:
        part = pending.pop()
        limit = part if isinstance(part, Limit) else limit
        per_device = per_device or part is Column
        pending.extend(typing.get_args(part))
        pending.extend(getattr(part, "__metadata__", ()))
    return limit if per_device else None


def per_device_fields() -> dict[str, tuple[str, Limit]]:
    """Every parameter that may differ between devices: name to group and limit."""
    return {
        name: (group, limit)
        for group, info in Scenario.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, Group)
        for name, field in info.annotation.model_fields.items()
        if (limit := _limit_each(field)) is not None
    }


class DeviceValues:
    """Reads the per-device parameters of a scenario, each file once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.num_devices = scenario.cell.num_devices
        self._fields = per_device_fields()
        self._files: dict[Path, TableFile] = {}

    def __call__(self, name: str) -> FloatColumn | None:
        """The parameter as an array: no axis if all devices share it, one axis otherwise, None if not given."""
        group, limit = self._fields[name]
        value = getattr(getattr(self.scenario, group), name)
        return None if value is None else self.resolve(value, f"{group}.{name}", limit)

    def resolve(self, value: PerDevice, where: str, limit: Limit) -> FloatColumn:
        """A per-device value as an array, checked for length and, where it comes from a file, for range."""
        if isinstance(value, float | int):
            return np.asarray(float(value))
        values = self._column(value, limit) if isinstance(value, Column) else np.asarray(value, dtype=np.float64)
        if values.size != self.num_devices:
            raise ScenarioError(
                f"{where}: {values.size} values for {self.num_devices} devices; give one each, or set cell.num_devices"
            )
        return values

    def _column(self, column: Column, limit: Limit) -> FloatColumn:
        if column.file not in self._files:
            self._files[column.file] = TableFile(column.file)
        values = self._files[column.file].column(column.column)
        bad = np.flatnonzero(limit.bad(values))
        if bad.size:
            row = int(bad[0])
            raise ScenarioError(
                f"{column.file}: column '{column.column}', row {row + 1}: {values[row]:g} is out of range; "
                f"it must be {limit.describe()}"
            )
        return values


def with_device_file(scenario: Scenario, path: Path) -> tuple[Scenario, list[str]]:
    """The scenario with a fleet from a file, a row per device, and the devices' names.

    A column replaces the parameter of that name; 'distance_m' is required, 'device' may name the devices.
    """
    table = TableFile(path)
    fields = per_device_fields()
    known = {*fields, DISTANCE, LABEL}
    for name in table.names:
        if name not in known:
            raise ScenarioError(f"{path}: unknown column '{name}'; {did_you_mean(name, known)}")
    if DISTANCE not in table.names:
        raise ScenarioError(f"{path}: no column '{DISTANCE}'; add the distance of each device in metres")
    tables = scenario.model_dump(mode="json", exclude_none=True)
    tables["cell"]["num_devices"] = table.num_rows
    tables["cell"]["placement"] = {"law": "file", "file": str(path), "column": DISTANCE}
    for name in set(table.names) & set(fields):
        tables[fields[name][0]][name] = {"file": str(path), "column": name}
    labels = table.labels(LABEL) if LABEL in table.names else [str(index) for index in range(table.num_rows)]
    return build(tables, str(path)), labels
