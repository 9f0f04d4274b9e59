"""A small data set: three noisy clusters of bytes."""

from __future__ import annotations

import numpy as np

from fairwave.data.sources import DataSet


def clusters() -> DataSet:
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 400).astype(np.int32)
    inputs = np.clip(draw.integers(0, 256, (3, 30))[labels] + draw.normal(0, 40, (400, 30)), 0, 255).astype(np.uint8)
    return DataSet(inputs[:300], labels[:300], inputs[300:], labels[300:])
