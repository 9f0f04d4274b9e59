"""Large-scale loss between a device and the access point."""

from __future__ import annotations

import math

SPEED_OF_LIGHT_M_PER_S = 299_792_458.0


def path_loss_constant(carrier_hz: float) -> float:
    """Path gain at one metre, kappa = (c / 4 pi f)^2."""
    return (SPEED_OF_LIGHT_M_PER_S / (4.0 * math.pi * carrier_hz)) ** 2
