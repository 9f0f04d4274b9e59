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
    """The processor executes this many instructions per register word of data."""
    clocks_per_instruction: Positive = 1.0
    """One instruction takes this many clock cycles."""
    clock_hz: Frequency
    """This is the clock frequency."""
    register_bits: Annotated[float, *one(Limit(NUMBER, 1.0, 4096.0, low_allowed=True))]
    """A register has this many bits."""


class Compute(Group):
    """This table describes the processor of one device."""

    compute_power_w: PowerEach
    """The processor draws this power while it computes (P_cp in the paper)."""
    seconds_per_bit: TimeEach
    """The processor takes this time per bit (tau in the paper)."""
    processor: Processor | None = None
    """The time per bit follows from this processor, which then replaces seconds_per_bit."""
    bits_per_iteration: InformationEach | None = None
    """One iteration processes this much data (d in the paper). Default: one batch of samples."""
    min_iterations: CountEach
    """A device does at least this many local iterations (j_min in the paper)."""
    max_iterations: CountEach | None = None
    """A device does at most this many local iterations. Default: ten passes over its own data, or 200 iterations if
    that is more."""
    battery_capacity_j: EnergyEach | None = None
    """A device's battery holds this energy. Plans say how long it lasts. In a run, a device skips the rounds that its
    charge does not cover."""
