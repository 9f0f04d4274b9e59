from __future__ import annotations

import math

import pytest

from fairwave import units


@pytest.mark.parametrize(
    ("text", "dimension", "expected"),
    [
        ("0 dBW", units.POWER, 1.0),
        ("30 dBm", units.POWER, 1.0),
        ("82.5 mW", units.POWER, 0.0825),
        ("-174 dBm/Hz", units.POWER_DENSITY, 10**-20.4),
        ("250 kHz", units.FREQUENCY, 250e3),
        ("250kHz", units.FREQUENCY, 250e3),
        ("9.8 dB", units.RATIO, 10**0.98),
        ("7.5 ns", units.TIME, 7.5e-9),
        ("7.5 µs", units.TIME, 7.5e-6),
        ("2 Wh", units.ENERGY, 7200.0),
        ("65 mJ", units.ENERGY, 0.065),
        ("875 kbit", units.INFORMATION, 875e3),
        ("1 kB", units.INFORMATION, 8e3),
        ("1.5e-1 km", units.LENGTH, 150.0),
        ("1.5 m/s", units.SPEED, 1.5),
        ("36 km/h", units.SPEED, 10.0),
        (0.25, units.POWER, 0.25),
        (4, units.NUMBER, 4.0),
    ],
)
def test_human_units_become_si(text, dimension, expected):
    assert units.parse(text, dimension) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "dimension", "said"),
    [
        ("0 dB", units.POWER, "is a ratio; expected a power"),
        ("3 kHz", units.TIME, "is a frequency; expected a time"),
        ("3 parsec", units.LENGTH, "unknown unit 'parsec'"),
        ("12", units.POWER, "has no unit"),
        ("fast", units.TIME, "is no time"),
        ("1 2 W", units.POWER, "is no power"),
        (True, units.POWER, "is no power"),
        (None, units.POWER, "is no power"),
        (math.nan, units.POWER, "not a finite number"),
        (math.inf, units.TIME, "not a finite number"),
    ],
)
def test_what_is_no_quantity_is_refused_with_a_remedy(value, dimension, said):
    with pytest.raises(ValueError, match=said) as caught:
        units.parse(value, dimension)
    assert dimension.example in str(caught.value)


@pytest.mark.parametrize("ratio", [1e-12, 0.5, 1.0, 9.55, 1e9])
def test_db_round_trip(ratio):
    assert units.from_db(units.to_db(ratio)) == pytest.approx(ratio, rel=1e-12)
