"""Fashion-MNIST: pictures of clothes, in the files of MNIST."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairwave.data.idx_files import NAMES, read_idx
from fairwave.data.package_clients import Package
from fairwave.data.published_data import PublishedData
from fairwave.errors import ScenarioError


def _convert(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    arrays = {}
    for part, name in NAMES.items():
        found = [each for each in (name, f"{name}.gz") if each in files]
        if not found:
            raise ScenarioError(f"fashion-mnist: no file {name} or {name}.gz among those given; give all four")
        arrays[part] = read_idx(files[found[0]], found[0])
    return arrays


fashion_mnist = PublishedData(
    name="fashion-mnist",
    summary="This set has pictures of clothes in 10 classes, 28 x 28 pixels, 60,000 to train and 10,000 to test.",
    licence="MIT (Zalando SE)",
    package=Package("apt-get", "dataset-fashion-mnist"),
    files=frozenset({*NAMES.values(), *(f"{name}.gz" for name in NAMES.values())}),
    convert=_convert,
    digest="2eec74045003bb5cc54c46331f8c48f77611acac295f1d863e16fbd263546563",
)
