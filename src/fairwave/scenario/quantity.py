"""Field types of the scenario: a number with a dimension, alone or one per device.

Every check that a single value can fail is made here, in the words that the user will read.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BeforeValidator, WithJsonSchema

from fairwave.scenario.group import Group
from fairwave.units import (
    COUNT,
    ENERGY,
    FREQUENCY,
    INFORMATION,
    LENGTH,
    NUMBER,
    POWER,
    POWER_DENSITY,
    RATIO,
    SPEED,
    TIME,
    Dimension,
    parse,
)


class Column(Group):
    """One column of a CSV or Parquet file: a value per device, in SI units."""

    file: Path
    """The values are read from this CSV or Parquet file."""
    column: str
    """The values stand in this column, in SI units."""


PerDevice: TypeAlias = float | tuple[float, ...] | Column
FloatColumn: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclasses.dataclass(frozen=True)
class Limit:
    """Dimension and range of a field; it stays on the annotation, so that device files are checked by it too."""

    dimension: Dimension
    low: float = 0.0
    high: float | None = None
    low_allowed: bool = False
    whole: bool = False

    @property
    def highest(self) -> float:
        """Largest value allowed."""
        return self.dimension.largest if self.high is None else self.high

    def describe(self) -> str:
        """The range in words."""
        unit = f" {self.dimension.unit}" if self.dimension.unit else ""
        kind = "a whole number " if self.whole else ""
        above = "at least" if self.low_allowed else "above"
        return f"{kind}{above} {self.low:g}{unit} and at most {self.highest:g}{unit}"

    def one(self, value: object) -> float:
        """One value in SI units, or a ValueError that names the value and the range."""
        number = parse(value, self.dimension)
        if self.bad(np.array([number]))[0]:
            raise ValueError(f"{value!r} is out of range; it must be {self.describe()}")
        return number

    def each(self, value: object) -> PerDevice:
        """A single value for all devices, a value per device, or the column that holds them."""
        if isinstance(value, dict | Column):
            return Column.model_validate(value)
        if not isinstance(value, list | tuple):
            return self.one(value)
        if not value:
            raise ValueError("the list is empty; give one value per device, or a single value for all")
        return tuple(self._member(index, item) for index, item in enumerate(value))

    def bad(self, values: FloatColumn) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of many SI values are out of range."""
        too_low = values < self.low if self.low_allowed else values <= self.low
        fractional = (values != np.floor(values)) if self.whole else np.zeros(values.shape, bool)
        return np.asarray(too_low | (values > self.highest) | ~np.isfinite(values) | fractional)

    def _member(self, index: int, item: object) -> float:
        try:
            return self.one(item)
        except ValueError as error:
            raise ValueError(f"device {index}: {error}") from None

    def schema(self) -> list[dict[str, Any]]:
        """What an editor may suggest: a number, or text with a unit."""
        bound = "minimum" if self.low_allowed else "exclusiveMinimum"
        number = {"type": "integer" if self.whole else "number", bound: self.low, "maximum": self.highest}
        text = {"type": "string", "description": f"with a unit, such as {self.dimension.example}"}
        return [number] if self.dimension in (NUMBER, COUNT) else [number, text]


def one(limit: Limit) -> tuple[object, ...]:
    """Annotations of a field that holds a single value."""
    return BeforeValidator(limit.one), WithJsonSchema({"anyOf": limit.schema()}), limit


def whole(low: int, high: int) -> tuple[object, ...]:
    """Annotations of a field that holds a single whole number."""
    limit = Limit(COUNT, low, high, low_allowed=True, whole=True)
    return BeforeValidator(lambda value: int(limit.one(value))), WithJsonSchema({"anyOf": limit.schema()}), limit


def each(limit: Limit) -> tuple[object, ...]:
    """Annotations of a field that holds a single value, a list, or a file's column."""
    column = {
        "type": "object",
        "properties": {"file": {"type": "string"}, "column": {"type": "string"}},
        "required": ["file", "column"],
        "additionalProperties": False,
    }
    array = {"type": "array", "items": {"anyOf": limit.schema()}, "minItems": 1}
    return BeforeValidator(limit.each), WithJsonSchema({"anyOf": [*limit.schema(), array, column]}), limit


Power = Annotated[float, *one(Limit(POWER))]
PowerDensity = Annotated[float, *one(Limit(POWER_DENSITY))]
Frequency = Annotated[float, *one(Limit(FREQUENCY))]
Time = Annotated[float, *one(Limit(TIME))]
NEAREST_M = 1e-3

Length = Annotated[float, *one(Limit(LENGTH, NEAREST_M, low_allowed=True))]
Speed = Annotated[float, *one(Limit(SPEED))]
Energy = Annotated[float, *one(Limit(ENERGY))]
Information = Annotated[float, *one(Limit(INFORMATION))]
Ratio = Annotated[float, *one(Limit(RATIO))]
Positive = Annotated[float, *one(Limit(NUMBER))]
NonNegative = Annotated[float, *one(Limit(NUMBER, low_allowed=True))]
Share = Annotated[float, *one(Limit(NUMBER, 0.0, 1.0, low_allowed=True))]

PowerEach = Annotated[PerDevice, *each(Limit(POWER))]
FrequencyEach = Annotated[PerDevice, *each(Limit(FREQUENCY))]
TimeEach = Annotated[PerDevice, *each(Limit(TIME))]
LengthEach = Annotated[PerDevice, *each(Limit(LENGTH, NEAREST_M, low_allowed=True))]
EnergyEach = Annotated[PerDevice, *each(Limit(ENERGY))]
InformationEach = Annotated[PerDevice, *each(Limit(INFORMATION))]
RatioEach = Annotated[PerDevice, *each(Limit(RATIO))]
ShareEach = Annotated[PerDevice, *each(Limit(NUMBER, 0.0, 1.0))]
PartEach = Annotated[PerDevice, *each(Limit(NUMBER, 0.0, 1.0, low_allowed=True))]
OffsetEach = Annotated[PerDevice, *each(Limit(NUMBER, -1e6, 1e6, low_allowed=True))]
PositiveEach = Annotated[PerDevice, *each(Limit(NUMBER))]
CountEach = Annotated[PerDevice, *each(Limit(COUNT, 1.0, 1e9, low_allowed=True, whole=True))]
NonNegativeEach = Annotated[PerDevice, *each(Limit(NUMBER, low_allowed=True))]
