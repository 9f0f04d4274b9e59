"""Every way in which an answer can be no good, each with a name under which it is counted."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np

from fairwave.federate.protocol import Answer, Status

MOST_STEPS = 2**53
"""No device has done more."""


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


@dataclasses.dataclass(frozen=True)
class Expected:
    """What an answer is held against."""

    round: int
    examples: int
    like: Mapping[str, np.ndarray]
    """Arrays with the names, shapes and types that are agreed."""
    max_norm: float


def fault_in(answer: Answer, expected: Expected) -> Fault:
    """What is wrong with an answer that arrived and could be read."""
    if answer.status is Status.STALE or answer.round != expected.round:
        return Fault.OTHER_ROUND
    if answer.examples != expected.examples:
        return Fault.OTHER_EXAMPLES
    told = [answer.told_noise_std] if np.isnan(answer.told_loss) else [answer.told_noise_std, answer.told_loss]
    if not np.isfinite(told).all():
        return Fault.NOT_FINITE
    if answer.told_noise_std < 0.0 or not 0 <= answer.spent <= MOST_STEPS:
        return Fault.UNREADABLE
    if answer.status is not Status.SENT:
        return Fault.NONE
    return Fault.UNREADABLE if answer.arrays is None else _fault_in_arrays(answer.arrays, expected)


def by_name(faults: np.ndarray) -> dict[str, list[int]]:
    """Devices by the name of their fault."""
    named: dict[str, list[int]] = {}
    for device in np.flatnonzero(faults):
        named.setdefault(Fault(int(faults[device])).name.lower(), []).append(int(device))
    return named


def _fault_in_arrays(arrays: Mapping[str, np.ndarray], expected: Expected) -> Fault:
    if set(arrays) != set(expected.like):
        return Fault.UNREADABLE
    if any(arrays[name].shape != like.shape for name, like in expected.like.items()):
        return Fault.OTHER_SHAPE
    if any(arrays[name].dtype != like.dtype for name, like in expected.like.items()):
        return Fault.OTHER_TYPE
    if not all(np.isfinite(array).all() for array in arrays.values()):
        return Fault.NOT_FINITE
    squares = sum(float(np.sum(np.square(array, dtype=np.float64))) for array in arrays.values())
    return Fault.TOO_LONG if np.sqrt(squares) > expected.max_norm else Fault.NONE
