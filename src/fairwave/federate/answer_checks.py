"""What an answer is held against before it is used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from fairwave.federate.protocol import Answer, Status, within_bounds
from fairwave.federate.sent_values import has_steps, received, sent_form
from fairwave.runs.faults import Fault


@dataclasses.dataclass(frozen=True)
class Expected:
    """What an answer is held against."""

    round: int
    examples: int
    like: Mapping[str, np.ndarray]
    """Arrays with the names, shapes and types that are agreed: the layout of the flat array."""
    max_norm: float
    update_bits: int = 32


def fault_in(answer: Answer, expected: Expected) -> Fault:
    """What is wrong with an answer that arrived and could be read."""
    if answer.status is Status.FAILED:
        return Fault.FAILED
    if answer.status is Status.STALE or answer.round != expected.round:
        return Fault.OTHER_ROUND
    if answer.examples != expected.examples:
        return Fault.OTHER_EXAMPLES
    numbers = [answer.reported_noise_std, *([] if np.isnan(answer.reported_loss) else [answer.reported_loss])]
    if not np.isfinite(numbers).all():
        return Fault.NOT_FINITE
    if not within_bounds(answer):
        return Fault.UNREADABLE
    if answer.status is not Status.SENT:
        return Fault.NONE
    return Fault.UNREADABLE if answer.values is None else _fault_in_values(answer.values, expected)


def _fault_in_values(sent: np.ndarray, expected: Expected) -> Fault:
    size, kind = sent_form(expected.like, expected.update_bits)
    if sent.shape != (size,):
        return Fault.OTHER_SHAPE
    if sent.dtype != kind:
        return Fault.OTHER_TYPE
    if not has_steps(sent, expected.like, expected.update_bits):
        return Fault.UNREADABLE
    flat = received(sent, expected.like, expected.update_bits)
    if not np.isfinite(flat).all():
        return Fault.NOT_FINITE
    return Fault.TOO_LONG if np.sqrt(np.sum(np.square(flat, dtype=np.float64))) > expected.max_norm else Fault.NONE
