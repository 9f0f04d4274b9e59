"""Which devices hold other data than the rest of the cell."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

LEAST_GAP = 0.1
"""Difference in distance that separates devices with rare data from the others."""


def class_distance(samples: Int[np.ndarray, "device class"]) -> Float[np.ndarray, " device"]:
    """Total variation distance of each device's classes from those of the whole cell: 0 if alike, towards 1 if rare."""
    of_all = samples.sum(axis=0) / max(int(samples.sum()), 1)
    own = samples / np.maximum(samples.sum(axis=1, keepdims=True), 1)
    distance: np.ndarray = 0.5 * np.abs(own - of_all).sum(axis=1)
    return distance


def holds_rare_data(samples: Int[np.ndarray, "device class"]) -> np.ndarray:
    """A mask of the devices beyond the largest gap in that distance; nobody where no gap is wide enough."""
    distance = class_distance(samples)
    ordered = np.sort(distance)
    gaps = np.diff(ordered)
    if gaps.size == 0 or gaps.max() < LEAST_GAP:
        return np.zeros(distance.shape, bool)
    rare: np.ndarray = distance > ordered[int(gaps.argmax())]
    return rare
