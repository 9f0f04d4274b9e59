"""Every way in which a device's answer can be no good, each with a name under which it is counted."""

from __future__ import annotations

import enum

import numpy as np


class Fault(enum.IntEnum):
    """Append only; stored results hold these numbers."""

    NONE = 0
    NO_ANSWER = 1
    """Nothing came before the deadline."""
    DISCONNECTED = 2
    """The device went away while it was asked."""
    FAILED = 3
    """The device's program raised an error or died."""
    UNREADABLE = 4
    """Records or values are missing, or of another kind than agreed."""
    OTHER_ROUND = 5
    """It is for another round, or the device knows of another."""
    OTHER_SHAPE = 6
    OTHER_TYPE = 7
    NOT_FINITE = 8
    TOO_LONG = 9
    OTHER_EXAMPLES = 10
    """It tells another number of samples than agreed, on which the privacy account stands."""
    LATE = 11
    """Its update was not there by the deadline, and is waited for: it is used in the round in which it comes."""
    IMPLAUSIBLE = 12
    """It reports more steps, gradients or answers than its questions allow."""


def fault_name(fault: Fault) -> str:
    """As people read it."""
    return fault.name.lower()


def by_name(faults: np.ndarray) -> dict[str, list[int]]:
    """Devices by the name of their fault."""
    named: dict[str, list[int]] = {}
    for device in np.flatnonzero(faults):
        named.setdefault(fault_name(Fault(int(faults[device]))), []).append(int(device))
    return named
