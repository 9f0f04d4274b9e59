"""How a sweep draws a parameter: from a range, or among choices. A draw is a pure function of a chance in [0, 1)."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationError

from fairwave.errors import did_you_mean
from fairwave.scenario.complaints import one_line
from fairwave.scenario.fields import limit_of
from fairwave.scenario.group import Group
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.quantity import Limit

DIGITS = 6
"""Significant digits of a drawn number: all of them fit into a folder's name."""
EXAMPLE = '{ law = "uniform", low = 1, high = 2 }'


@dataclasses.dataclass(frozen=True)
class Range:
    """Anything between two numbers in SI units; evenly, or evenly on a logarithmic axis."""

    law: Literal["uniform", "log_uniform"]
    low: float
    high: float
    whole: bool
    """Only whole numbers are drawn, both ends included."""

    def draw(self, chance: float) -> float | int:
        """The value below which that share of all draws lies."""
        low, high = self.low, self.high
        if self.whole:  # every whole number has a stretch of length one, the ends too
            low, high = low - 0.5, high + 0.5
        value = low * (high / low) ** chance if self.law == "log_uniform" else low + chance * (high - low)
        short = round(value) if self.whole else float(f"{value:.{DIGITS}g}")
        return min(max(short, self.low), self.high)


def _some(value: object) -> object:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{value!r} is no list of values; give one such as [32, 64]")
    return tuple(value)


Values = Annotated[tuple[Any, ...], BeforeValidator(_some)]


class Choice(Group):
    """One of several values, each as often as the others."""

    law: Literal["choice"]
    """This law draws each of the values with the same probability."""
    values: Values
    """These values can be drawn."""

    def draw(self, chance: float) -> Any:
        """The value at that share of the list."""
        return self.values[int(chance * len(self.values))]


Law = Range | Choice


class _Bounds(Group):
    """A range as it is written: numbers, or text with units."""

    law: Literal["uniform", "log_uniform"]
    """This law draws evenly between two numbers, or evenly on a logarithmic axis."""
    low: Any
    """No smaller number is drawn."""
    high: Any
    """No larger number is drawn."""


def law_of(parameter: str, table: object) -> Law:
    """The law that a table describes; ValueError says what is wrong with it and the remedy."""
    if not isinstance(table, dict):
        raise ValueError(f"{table!r} is no law; write a table such as {EXAMPLE}")
    name, known = table.get("law"), ("uniform", "log_uniform", "choice")
    if name is None:
        raise ValueError(f"no law given; write a table such as {EXAMPLE}")
    if name not in known:
        raise ValueError(f"unknown law {name!r}; {did_you_mean(str(name), known)}")
    model = Choice if name == "choice" else _Bounds
    try:
        read = model.model_validate(table)
    except ValidationError as error:
        raise ValueError(one_line(error, model)) from None
    return read if isinstance(read, Choice) else _range(parameter, read)


def _range(parameter: str, bounds: _Bounds) -> Range:
    limit = limit_of(parameter.split("."), Scenario)
    if limit is None:
        raise ValueError(f'law "{bounds.law}" needs a number, which this is not; use law = "choice" with values')
    low, high = _end(limit, "low", bounds.low), _end(limit, "high", bounds.high)
    if not low < high:
        raise ValueError(
            f"low {bounds.low!r} is not below high {bounds.high!r}; swap them, or give one value in [grid]"
        )
    if bounds.law == "log_uniform" and low <= 0.0:
        raise ValueError(f'low {bounds.low!r} has no logarithm; raise it above 0, or use law = "uniform"')
    return Range(bounds.law, low, high, limit.whole)


def _end(limit: Limit, name: str, value: object) -> float:
    try:
        return limit.one(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
