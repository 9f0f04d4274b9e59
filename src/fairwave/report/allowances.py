"""The releases that a budget allows each device, fixed before the first round: the privacy filter of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairwave.double_precision import double_precision
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario


@double_precision()
def allowances(scenario: Scenario, counts_by_seed: Mapping[int, np.ndarray]) -> dict[str, Any] | None:
    """For every seed, how many releases each device may make, from how many samples it holds; None without a budget."""
    privacy, mode = scenario.privacy, mode_of(scenario.privacy)
    if privacy.max_epsilon is None:
        return None
    rows: list[dict[str, Any]] = []
    for seed, counts in counts_by_seed.items():
        enforced = mode.enforcement(scenario, counts, scenario.learning.num_parameters())
        if enforced.budget is None:
            continue
        sampling = enforced.sampling if mode.counts_steps else np.ones(counts.shape)
        alike: dict[tuple[float, float, int], list[int]] = {}
        columns = (map(float, sampling), map(float, enforced.lost_delta), map(int, enforced.budget))
        for device, kind in enumerate(zip(*columns, strict=True)):
            alike.setdefault(kind, []).append(device)
        for (share, lost, most), devices in alike.items():
            row = {"sampling": share, "lost_delta": lost, "most_releases": most}
            rows.append({"seed": seed, "devices": devices, "noise_multiplier": enforced.noise_multiplier, **row})
    return {
        "max_epsilon": privacy.max_epsilon,
        "delta": privacy.delta,
        "counted_in": "local steps" if mode.counts_steps else "rounds in which a device was heard",
        "allowed": rows,
    }
