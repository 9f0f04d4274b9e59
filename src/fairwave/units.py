"""Human units at the edge, SI inside: "0 dBW" is read once, here, and becomes 1.0 W.

The scenario files, the command line and the plots speak dB; no other module does.
"""

from __future__ import annotations

import dataclasses
import math
import re


def from_db(value_db: float) -> float:
    """Linear power ratio of a value in decibel."""
    return float(10.0 ** (value_db / 10.0))


def to_db(ratio: float) -> float:
    """Decibel of a linear power ratio."""
    return 10.0 * math.log10(ratio)


@dataclasses.dataclass(frozen=True)
class Dimension:
    """What kind of thing a number measures, its SI unit, and the largest value that can be meant."""

    name: str
    unit: str
    example: str
    largest: float

    @property
    def described(self) -> str:
        """The name with its article."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"


POWER = Dimension("power", "W", '"82.5 mW" or "0 dBW"', 1e6)
POWER_DENSITY = Dimension("power density", "W/Hz", '"-174 dBm/Hz"', 1.0)
FREQUENCY = Dimension("frequency", "Hz", '"250 kHz"', 1e13)
TIME = Dimension("time", "s", '"0.75 s" or "7.5 ns"', 1e7)
LENGTH = Dimension("length", "m", '"200 m"', 1e7)
SPEED = Dimension("speed", "m/s", '"1.5 m/s" or "50 km/h"', 1e5)
ENERGY = Dimension("energy", "J", '"65 mJ" or "2 Wh"', 1e9)
INFORMATION = Dimension("amount of data", "bit", '"875 kbit"', 1e15)
RATIO = Dimension("ratio", "", '"9.8 dB" or 9.55', 1e12)
NUMBER = Dimension("plain number", "", "0.45", 1e12)
COUNT = Dimension("whole number", "", "10", 1e12)

_LINEAR = {
    POWER: {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "kW": 1e3},
    POWER_DENSITY: {"W/Hz": 1.0},
    FREQUENCY: {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    TIME: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    LENGTH: {"m": 1.0, "km": 1e3},
    SPEED: {"m/s": 1.0, "km/h": 1.0 / 3.6},
    ENERGY: {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "kJ": 1e3, "Wh": 3600.0, "mWh": 3.6},
    INFORMATION: {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "B": 8.0, "kB": 8e3, "MB": 8e6},
}
_DECIBEL = {
    POWER: {"dBW": 1.0, "dBm": 1e-3},
    POWER_DENSITY: {"dBW/Hz": 1.0, "dBm/Hz": 1e-3},
    RATIO: {"dB": 1.0},
}
_NUMBER_AND_UNIT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµ/]*)\s*")


def parse(value: object, dimension: Dimension) -> float:
    """SI value of a number (already SI) or of text with a unit; ValueError says what is wrong and the remedy."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no {dimension.name}; give one such as {dimension.example}")
    number = _from_text(value, dimension) if isinstance(value, str) else float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number; give one such as {dimension.example}")
    return number


def _from_text(text: str, dimension: Dimension) -> float:
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is no {dimension.name}; give one such as {dimension.example}')
    number, unit = float(match[1]), match[2].replace("µ", "u")
    if unit in _LINEAR.get(dimension, {}):
        return number * _LINEAR[dimension][unit]
    if unit in _DECIBEL.get(dimension, {}):
        return from_db(min(number, 1e3)) * _DECIBEL[dimension][unit]
    if not unit:
        raise ValueError(f'"{text}" has no unit; write a bare number (SI) or text such as {dimension.example}')
    owner = next((d.described for table in (_LINEAR, _DECIBEL) for d, units in table.items() if unit in units), None)
    near = _of_other_case(unit, dimension)
    if owner is None and near is not None:
        raise ValueError(f'"{text}" is in an unknown unit \'{unit}\'; did you mean "{match[1]} {near}"?')
    what = owner if owner else f"in an unknown unit '{unit}'"
    raise ValueError(f'"{text}" is {what}; expected {dimension.described} such as {dimension.example}')


def _of_other_case(unit: str, dimension: Dimension) -> str | None:
    """The unit of a dimension that has the same letters, whether capital or small; None if there is none."""
    known = (*_LINEAR.get(dimension, {}), *_DECIBEL.get(dimension, {}))
    return next((name for name in known if name.lower() == unit.lower()), None)
