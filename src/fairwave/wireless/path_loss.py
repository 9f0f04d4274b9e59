"""Large-scale loss between a device and the access point."""

from __future__ import annotations

import math

import numpy as np

SPEED_OF_LIGHT_M_PER_S = 299_792_458.0


def path_loss_constant(carrier_hz: float) -> float:
    """Path gain at one metre, kappa = (c / 4 pi f)^2."""
    return (SPEED_OF_LIGHT_M_PER_S / (4.0 * math.pi * carrier_hz)) ** 2


def path_loss_db(path_gain: np.ndarray) -> np.ndarray:
    """Path loss in decibels, as figures show it."""
    return np.asarray(-10.0 * np.log10(path_gain))
