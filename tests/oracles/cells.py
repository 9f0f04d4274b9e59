"""A small cell that trains on clusters."""

from __future__ import annotations

import fairwave
from fairwave import schemes
from fairwave.data.sources import DataSet
from fairwave.engine.round import Cell
from fairwave.learning.models import model_of


def small_cell(data: DataSet, name: str, *overrides: str) -> Cell:
    """A scheme on the clean paper's scenario, with a model for clusters."""
    scenario = fairwave.load_scenario(
        "paper-clean",
        [
            "learning.layer_sizes=[30, 8, 3]", "learning.batch_size=16", "compute.bits_per_iteration=802816",
            *overrides,
        ],
    )  # fmt: skip
    return Cell(scenario, schemes.ALL[name], model_of(scenario.learning), data)
