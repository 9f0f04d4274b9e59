"""What access point and devices say to each other, whatever carries it.

A model, a gradient and an update are named arrays. Rounds count from 0.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from fairwave.learning.named_arrays import NamedArrays

VERSION = 2
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


@dataclasses.dataclass(frozen=True)
class Task:
    """What the access point asks of one device."""

    federation: str
    """Name of the federation, by which a device keeps its states apart."""
    scheme: str
    seed: int
    round: int
    phase: Phase
    deviation: float
    """The device's deviation, after the last round in which it was scored."""
    scored_round: int
    """That round; -1 for none."""
    steps_left: int
    """Local steps that the access point's ledger leaves the device; -1 for no limit."""
    copy: NamedArrays | None
    """The device's copy of the model, in the first exchange of a round."""
    mean_gradient: NamedArrays | None
    """In the second exchange of a round; left out if no gradient arrived."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a device replies."""

    round: int
    status: Status
    arrays: NamedArrays | None = None
    """Its gradient or its update; only with status 'sent'."""
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
