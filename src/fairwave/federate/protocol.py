"""What access point and devices say to each other, whatever carries it: the whole vocabulary of the wire.

Nothing leaves a device but its number, with a signature that proves it, and an `Answer` that `sayable` lets through:
enumerated words, whole and real numbers within stated bounds, and one array of the agreed length and type. There
is no field for free text, so that no message of an error, a library or a file system can carry a record away; such
messages stay in the device's own log.

A model, a gradient and an update each travel as one flat array: all leaves of the model in their order, row by row.
Both sides know the model, so that names and shapes do not travel. Rounds count from 0.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import secrets
from collections.abc import Mapping

import numpy as np

from fairwave.federate.sent_values import has_sent_form
from fairwave.learning.named_arrays import flat_form

VERSION = 4
"""Version of this protocol; parties of different versions do not talk to each other."""


class Phase(enum.StrEnum):
    """The exchanges of a round."""

    GRADIENT = "gradient"
    UPDATE = "update"


class Status(enum.StrEnum):
    """What a device says of its own answer."""

    SENT = "sent"
    OUTAGE = "outage"
    """Its channel carries nothing this round; it does not train."""
    LOST = "lost"
    """It did its part, but the channel was worse than it had estimated."""
    RESTING = "resting"
    """It has not enough privacy budget or charge left for this round."""
    STALE = "stale"
    """It knows of a later round, or not of this one; nothing was done."""
    FAILED = "failed"
    """It could not answer, or refuses to; the reason says why in one word."""


class Reason(enum.StrEnum):
    """Why a device did not answer. These words are all that it says about it."""

    NONE = "none"
    UNREADABLE = "unreadable"
    """The task is not as agreed."""
    OTHER_AGREEMENT = "other_agreement"
    """The task names a federation, scheme, seed or agreement that is not the device's own."""
    CHANGED_AGREEMENT = "changed_agreement"
    """The scenario is not the one that this federation began with."""
    REFUSED_COPY = "refused_copy"
    """The copy or the mean gradient has another layout than agreed, is not finite, or is too long; or the deviation is
    none."""
    CONFIGURATION = "configuration"
    """The node's configuration is incomplete."""
    DATA = "data"
    """The device's data cannot be read, or do not fit the scenario."""
    STATE = "state"
    """The device's state or its privacy account cannot be read or written."""
    INTERNAL = "internal"
    """Anything else."""


def new_ask() -> int:
    """A number for one question."""
    return 1 + secrets.randbits(62)


@dataclasses.dataclass(frozen=True)
class Task:
    """What the access point asks of one device."""

    federation: str
    """Name of the federation, by which a device keeps its states apart."""
    scheme: str
    seed: int
    agreement: bytes
    """A digest of what the access point takes to be agreed on, for the device to compare with its own."""
    round: int
    phase: Phase
    deviation: float
    """The device's deviation, after the last round in which it was scored."""
    scored_round: int
    """That round; -1 for none."""
    steps_left: int
    """Local steps that the access point's ledger leaves the device; -1 for no limit."""
    copy: np.ndarray | None
    """The device's copy of the model, in the first exchange of a round."""
    mean_gradient: np.ndarray | None
    """In the second exchange of a round; left out if no gradient arrived."""
    ask: int = dataclasses.field(default_factory=new_ask)
    """A number of this question alone, by which a device tells a second question from one that was delivered twice."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a device replies."""

    round: int
    status: Status
    values: np.ndarray | None = None
    """Its gradient or its update, in the agreed bits (`sent_values`); only with status 'sent'."""
    examples: int = 0
    """Samples that it holds."""
    spent: int = 0
    """Local steps whose results have left the device so far, by its own state, where a proof counts them."""
    state_name: int = 0
    """A number for that state: another one knows nothing of what left the device before."""
    exhausted: bool = False
    """It will never take part again: its charge or its budget does not cover another round."""
    reported_noise_std: float = 0.0
    """Noise that private training leaves in each value of the update."""
    reported_loss: float = float("nan")
    """The loss of its copy, on its data; only where the scheme asks for it."""
    telemetry: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """For the experimenter; no policy reads it."""
    gradients: int = 0
    """Gradients that have left the device so far, by its own state, where a proof counts them."""
    update_asks: int = 0
    """Questions for an update that this state has answered so far, where a proof counts them."""
    gradient_asks: int = 0
    """Questions for a gradient that it has answered so far."""
    reason: Reason = Reason.NONE
    """Why there is nothing else; only with status 'failed'."""


WHOLE = {
    **{"round": 2**31, "examples": 2**31, "spent": 2**40, "gradients": 2**40, "state_name": 2**63 - 1},
    **{"update_asks": 2**40, "gradient_asks": 2**40},
}
"""Whole numbers of an answer, each from 0 to this."""
REAL = 1e30
"""Real numbers of an answer are no larger than this; a loss that was not asked for is NaN."""
TELEMETRY = (
    *("optimal_iterations", "local_iterations", "transmit_power_w", "uplink_rate_bps"),
    *("compute_energy_j", "transmit_energy_j", "energy_j", "utility"),
    *("received_loss", "loss", "update_norm", "wall_time_s"),
)
"""What a device may tell the experimenter: its plan, and what it measured while it trained."""


def sayable(answer: Answer, like: Mapping[str, np.ndarray], bits: int = 32) -> bool:
    """Whether an answer is within the vocabulary; `like` and `bits` are the layout and bits that are agreed on."""
    telemetry = set(answer.telemetry) <= set(TELEMETRY) and all(
        type(value) is float for value in answer.telemetry.values()
    )
    words = type(answer.status) is Status and type(answer.reason) is Reason and type(answer.exhausted) is bool
    return (
        words
        and telemetry
        and within_bounds(answer)
        and (answer.values is None or has_sent_form(answer.values, like, bits))
    )


def sayable_round(number: int) -> int:
    """A round's number within the bounds of an answer."""
    return min(max(number, 0), WHOLE["round"])


def within_bounds(answer: Answer) -> bool:
    """Whether every number of an answer is one that a device may say."""
    whole = [(getattr(answer, name), most) for name, most in WHOLE.items()]
    if not all(type(value) is int and 0 <= value <= most for value, most in whole):
        return False
    loss, std = answer.reported_loss, answer.reported_noise_std
    if type(loss) is not float or type(std) is not float:
        return False
    return 0.0 <= std <= REAL and (math.isnan(loss) or abs(loss) <= REAL)


def fits(flat: np.ndarray, like: Mapping[str, np.ndarray]) -> bool:
    """Whether a flat array has the length and type of the agreed layout."""
    size, kind = flat_form(like)
    return type(flat) is np.ndarray and flat.shape == (size,) and flat.dtype == kind
