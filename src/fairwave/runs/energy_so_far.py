"""What devices have spent for an upload so far, round by round."""

from __future__ import annotations

import numpy as np

from fairwave.engine.round_record import Arrays


class EnergySoFar:
    """Mean energy of each device's uploads so far."""

    def __init__(self, num_devices: int) -> None:
        self._total_j, self._uploads = np.zeros(num_devices), np.zeros(num_devices)

    def add(self, arrays: Arrays) -> None:
        """Take in a round."""
        uploaded = arrays["participating"] & ~arrays["outage"]
        self._total_j += np.where(uploaded, arrays["energy_j"], 0.0)
        self._uploads += uploaded

    def mean_j(self) -> float:
        """Mean over the devices that have uploaded at all."""
        return float(np.mean(self._known())) if self._uploads.any() else float("nan")

    def std_j(self) -> float:
        """Std over the devices that have uploaded at all."""
        return float(np.std(self._known())) if self._uploads.any() else float("nan")

    def _known(self) -> np.ndarray:
        known = self._uploads > 0
        return np.asarray(self._total_j[known] / self._uploads[known])
