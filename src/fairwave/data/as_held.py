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
WORDS = (np.uint8, np.uint16)
"""Types of inputs that are values from 0 to 1 for the model."""


def as_held(scenario: Scenario, data: DataSet, holdings: Holdings) -> DataSet:
    """A data set with the labels and inputs that devices have for its training samples."""
    values, names = DeviceValues(scenario), ("label_noise", "input_gain", "input_offset")
    noise, gain, offset = (np.broadcast_to(np.asarray(values(name), float), holdings.shares.shape) for name in names)
    holder = holders(holdings, data.train_labels.size)
    if noise.any():
        share = np.where(holder == NOBODY, 0.0, noise[holder])
        labels = noisy_labels(data.train_labels, share, data.num_classes, scenario.run.seed)
        data = dataclasses.replace(data, train_labels=labels)
    changed = np.flatnonzero((gain != 1.0) | (offset != 0.0))
    if changed.size:
        inputs = with_fractions(data.train_inputs)
        for device in changed:
            own = holder == device
            inputs[own] = changed_inputs(inputs[own], gain[device], offset[device])
        data = dataclasses.replace(data, train_inputs=inputs)
    return data


def holders(holdings: Holdings, num_samples: int) -> np.ndarray:
    """The device that holds each sample, in any round; -1 for a sample that nobody ever holds."""
    holder = np.full(num_samples, NOBODY)
    for device, (held, share) in enumerate(zip(holdings.samples, holdings.shares, strict=True)):
        holder[held[:share]] = device
    return holder


def noisy_labels(labels: np.ndarray, share: np.ndarray, num_classes: int, seed: int) -> np.ndarray:
    """Labels of which some are replaced by another class, drawn evenly: each with the chance that its sample has.

    A draw is addressed by the number of its sample, whoever holds it: with a larger share the same labels stay wrong,
    and others become so.
    """
    draw = host_generator(seed, Stream.LABEL_NOISE)
    chance, further = draw.random(labels.size), draw.integers(1, max(2, num_classes), labels.size)
    wrong = (labels + further) % num_classes
    return np.where(chance < share, wrong, labels).astype(labels.dtype)


def with_fractions(inputs: np.ndarray) -> np.ndarray:
    """A copy of inputs that can hold changed values: bytes and 16-bit words as such, other whole numbers as floats."""
    kept = inputs.dtype in WORDS or np.issubdtype(inputs.dtype, np.floating)
    return inputs.copy() if kept else inputs.astype(np.float32)


def changed_inputs(inputs: np.ndarray, gain: float, offset: float) -> np.ndarray:
    """Inputs times gain, plus offset, where bytes and 16-bit words are values from 0 to 1, rounded and clipped to that.

    Each value is changed by itself, so that no record enters another one.
    """
    if inputs.dtype not in WORDS:
        return (gain * inputs + offset).astype(inputs.dtype)
    most = np.iinfo(inputs.dtype).max
    return np.clip(np.rint(gain * inputs + offset * most), 0, most).astype(inputs.dtype)
