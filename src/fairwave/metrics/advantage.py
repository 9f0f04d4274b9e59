"""Whether misbehaviour paid: devices that misbehaved beside those that did not, and beside their honest selves."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
from numpy.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class Means:
    """Means over one group of devices and the rounds that count."""

    received_loss: float
    """Loss of the model that devices have, on their own data."""
    received_accuracy: float
    energy_j: float
    utility: float
    deviation: float


@dataclasses.dataclass(frozen=True)
class Advantage:
    """What misbehaving brought in one run."""

    cheats: Means
    honest: Means
    """The others, in the same run."""
    honest_selves: Means
    """The same devices in the run where nobody misbehaves."""
    others_before: Means
    """The others in that run."""
    detection_rate: float
    """Share of the misbehaving devices' rounds in which they were caught."""
    false_alarm_rate: float
    """Share of the others' rounds in which they were."""

    @property
    def loss_gap(self) -> float:
        """Loss of those who misbehave over that of the others, less 1: positive is worse."""
        return self.cheats.received_loss / self.honest.received_loss - 1.0

    @property
    def energy_saved(self) -> float:
        """Share of the others' energy that is not spent."""
        return 1.0 - self.cheats.energy_j / self.honest.energy_j

    @property
    def loss_gained(self) -> float:
        """Loss over that of the same devices if they were honest, less 1: negative is better."""
        return self.cheats.received_loss / self.honest_selves.received_loss - 1.0

    @property
    def energy_gained(self) -> float:
        """Share of the energy that the same devices would spend honestly, and do not."""
        return 1.0 - self.cheats.energy_j / self.honest_selves.energy_j

    @property
    def harm(self) -> float:
        """What it costs the others: their loss over that without misbehaviour, less 1."""
        return self.honest.received_loss / self.others_before.received_loss - 1.0


Recorded = dict[str, np.ndarray]
"""Values of rounds by devices, under their names in results."""


def advantage(run: Recorded, undisturbed: Recorded, cheats: ArrayLike, first: int) -> Advantage:
    """The advantage of the devices that misbehave, over the rounds from `first` (counted from 0) on."""
    who = np.asarray(cheats, bool)
    caught, there = run["findings"][first:] > 0, run["delivered"][first:] > 0
    return Advantage(
        cheats=_means(run, who, first),
        honest=_means(run, ~who, first),
        honest_selves=_means(undisturbed, who, first),
        others_before=_means(undisturbed, ~who, first),
        detection_rate=_share(caught[:, who], there[:, who]),
        false_alarm_rate=_share(caught[:, ~who], there[:, ~who]),
    )


def _means(run: Recorded, who: np.ndarray, first: int) -> Means:
    asked = run["participating"][first:][:, who] > 0

    def mean(name: str) -> float:
        with warnings.catch_warnings():  # a group that never took part
            warnings.simplefilter("ignore", RuntimeWarning)
            return float(np.nanmean(np.where(asked, run[name][first:][:, who], np.nan)))

    return Means(*(mean(field.name) for field in dataclasses.fields(Means)))


def _share(flags: np.ndarray, among: np.ndarray) -> float:
    return float(np.sum(flags & among) / np.sum(among)) if among.any() else float("nan")
