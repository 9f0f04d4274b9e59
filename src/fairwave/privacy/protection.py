"""What makes a device's training private: the parameters of clipping, sampling and noise."""

from __future__ import annotations

import dataclasses

from fairwave.privacy.noise import Source


@dataclasses.dataclass(frozen=True)
class Protection:
    """How every step of a device's training is protected."""

    clip_norm: float
    noise_multiplier: float
    exchange_noise_multiplier: float | None
    """Noise multiplier of the exchanged gradient; None if none is exchanged."""
    capacity: int
    """Places in a batch; more records than that are rarely drawn, and then dropped."""
    source: Source
