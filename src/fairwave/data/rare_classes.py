"""A way to share samples out in which some devices alone hold some classes, and nobody holds more samples than others.

Devices that have other data can so be told apart from devices that have fewer.
"""

from __future__ import annotations

import numpy as np

from fairwave.errors import ScenarioError
from fairwave.scenario.partition_laws import Rare


def rare_classes(law: Rare, labels: np.ndarray, num_devices: int, draw: np.random.Generator) -> list[np.ndarray]:
    """The samples of every device, in an order that is drawn."""
    _check(law, labels, num_devices)
    is_rare = np.isin(labels, law.classes)
    rare, common = (draw.permutation(np.flatnonzero(kind)) for kind in (is_rare, ~is_rare))
    owners = len(law.devices)
    each, of_rare = even_holdings(rare.size, common.size, num_devices, owners, law.share)
    parts = []
    for device in range(num_devices):
        count = of_rare if device in law.devices else 0
        special, rare = rare[:count], rare[count:]
        usual, common = common[: each - count], common[each - count :]
        parts.append(draw.permutation(np.concatenate([special, usual])))
    return parts


def even_holdings(rare: int, common: int, num_devices: int, owners: int, share: float) -> tuple[int, int]:
    """The most samples that every device can hold, and how many of those of an owner are of the rare classes.

    An owner holds as many rare samples as its part of them and `share` of its holding allow.
    """
    for each in range((rare + common) // num_devices, 0, -1):
        of_rare = min(rare // owners, int(share * each))
        if num_devices * each - owners * of_rare <= common:
            return each, of_rare
    return 0, 0


def _check(law: Rare, labels: np.ndarray, num_devices: int) -> None:
    missing = [device for device in law.devices if device >= num_devices]
    if missing:
        raise ScenarioError(
            f"data.partition: device {missing[0]} is to hold rare classes, and the cell has {num_devices}, numbered "
            "from 0; choose among them"
        )
    unknown = [each for each in law.classes if not (labels == each).any()]
    if unknown:
        raise ScenarioError(
            f"data.partition: no sample of the data set is of class {unknown[0]}; name classes that it has, from 0"
        )
