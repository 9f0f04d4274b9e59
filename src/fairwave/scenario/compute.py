"""The processor of one device, and what feeds it."""

from __future__ import annotations

from typing import Annotated

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import (
    CountEach,
    EnergyEach,
    Frequency,
    InformationEach,
    Limit,
    Positive,
    PowerEach,
    TimeEach,
    one,
)
from fairwave.units import NUMBER


class Processor(Group):
    """A device's processor, from which the time per bit follows."""

    instructions_per_word: Positive
    """Instructions executed per register word of data."""
    clocks_per_instruction: Positive = 1.0
    """Clock cycles per instruction."""
    clock_hz: Frequency
    """Clock frequency."""
    register_bits: Annotated[float, *one(Limit(NUMBER, 1.0, 4096.0, low_allowed=True))]
    """Register size."""


class Compute(Group):
    """The processor of one device."""

    compute_power_w: PowerEach
    """Power P_cp drawn while computing."""
    seconds_per_bit: TimeEach
    """Processing time tau per bit."""
    processor: Processor | None = None
    """A processor to derive the time per bit from; it replaces seconds_per_bit."""
    bits_per_iteration: InformationEach | None = None
    """Data d processed in one iteration. Default: one batch of samples."""
    min_iterations: CountEach
    """Fewest local iterations j_min."""
    max_iterations: CountEach | None = None
    """Most local iterations. Default: ten passes over the device's own data, or 200 iterations, if that is more."""
    battery_capacity_j: EnergyEach | None = None
    """Battery. Plans tell how long it lasts; in a run, a device sits out the rounds that its charge does not cover."""
