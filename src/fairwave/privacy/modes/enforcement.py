"""What a privacy mode enforces in one cell: how devices train, and how much each may spend."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from fairwave.privacy.protection import Protection


@dataclasses.dataclass(frozen=True)
class Enforcement:
    """For one scenario, whose devices hold a known number of samples each."""

    clip_norm: float
    noise_multiplier: float
    exchange_noise_multiplier: float
    rounding_delta: float
    """Probability, per release, that floating-point noise is not what is accounted for."""
    sampling: np.ndarray
    """Per device, the probability with which a record is in a local step's batch."""
    lost_delta: np.ndarray
    """Per device and step, the probability that something is not what is accounted for: overfull batch or rounding."""
    protection: Protection | None
    """What devices do in every step of their training; None for plain training."""
    work_out_budget: Callable[[], np.ndarray | None]

    @functools.cached_property
    def budget(self) -> np.ndarray | None:
        """The local steps, or rounds, that each device may spend in all; None without a limit."""
        return self.work_out_budget()
