"""The training data as devices hold them: what a scenario says is different in the samples of some devices.

Who holds which samples is decided before, by the labels of the data set. The test samples stay as they are.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from fairwave.data.partition import Holdings
from fairwave.data.sources import DataSet
from fairwave.keys import Stream, host_generator
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues

NOBODY = -1


def as_held(scenario: Scenario, data: DataSet, holdings: Holdings) -> DataSet:
    """A data set with the labels that devices have for its training samples."""
    noise = np.asarray(DeviceValues(scenario)("label_noise"), float)
    if not noise.any():
        return data
    share = of_samples(noise, holders(holdings, data.train_labels.size), 0.0)
    labels = noisy_labels(data.train_labels, share, data.num_classes, scenario.run.seed)
    return dataclasses.replace(data, train_labels=labels)


def holders(holdings: Holdings, num_samples: int) -> np.ndarray:
    """The device that holds each sample, in any round; -1 for a sample that nobody ever holds."""
    holder = np.full(num_samples, NOBODY)
    for device, (held, share) in enumerate(zip(holdings.samples, holdings.shares, strict=True)):
        holder[held[:share]] = device
    return holder


def of_samples(values: np.ndarray, holder: np.ndarray, otherwise: float) -> np.ndarray:
    """Every sample's value, out of one for all devices or one for each; samples that nobody holds have another."""
    if values.ndim == 0:
        values = np.full(holder.max() + 1, values)
    return np.where(holder == NOBODY, otherwise, values[holder])


def noisy_labels(labels: np.ndarray, share: np.ndarray, num_classes: int, seed: int) -> np.ndarray:
    """Labels of which some are replaced by another class, drawn evenly: each with the chance that its sample has.

    A draw is addressed by the number of its sample, whoever holds it: with a larger share the same labels stay wrong,
    and others become so.
    """
    draw = host_generator(seed, Stream.LABEL_NOISE)
    chance, further = draw.random(labels.size), draw.integers(1, max(2, num_classes), labels.size)
    wrong = (labels + further) % num_classes
    return np.where(chance < share, wrong, labels).astype(labels.dtype)
