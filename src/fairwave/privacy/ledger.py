"""The ledger: every message that leaves its sender is an event, whatever it may later be proved to cost."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np


@dataclasses.dataclass(frozen=True)
class ReleaseEvent:
    """One kind of message in one round, for all devices that sent or received it."""

    content: Literal["gradient", "update", "model", "deviation"]
    sender: Literal["device", "access point"]
    audience: Literal["device", "access point"]
    devices: np.ndarray
    """Device numbers: who sent it, or who received it from the access point."""
    noise_std: np.ndarray
    """Of the noise on each value, per device; 0 for none."""
    proven_sensitivity: float | None
    """L2 bound that the code enforces on one record's influence; None if it enforces none, which proves nothing."""
