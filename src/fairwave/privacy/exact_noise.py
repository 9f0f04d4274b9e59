"""Gaussian noise without rounding: OpenDP's discrete Gaussian on an integer grid. Seconds for a hundred thousand."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from fairwave.errors import ArgumentError
from fairwave.privacy.hardened_noise import grid_step

PER_STD = 2.0**36
"""Grid steps to one std. Values are cut to the grid before noise, which may part two sums by a step in every
coordinate: for a hundred million of them by less than 1e-6 of a std."""
LARGEST = 2.0**61
"""Counts beyond this are cut to it, which brings no two vectors further apart."""


def exactly_noised(values: np.ndarray, std: float) -> np.ndarray:
    """Values, cut to the grid, plus a discrete Gaussian of that std on it."""
    if std == 0.0:
        return values
    step = grid_step(std, PER_STD)
    counts = np.trunc(np.clip(values / step, -LARGEST, LARGEST)).astype(np.int64)
    return np.asarray(_sampler(std / step)(counts.ravel().tolist()), np.float64).reshape(values.shape) * step


def check_installed() -> None:
    """Raise, with the remedy, if OpenDP is not there."""
    if importlib.util.find_spec("opendp") is None:
        raise ArgumentError(
            "privacy.noise_source: 'exact' needs OpenDP, which is not installed; pip install 'fairwave[exact]', or use "
            "'hardened'"
        )


def _sampler(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float), scale)
