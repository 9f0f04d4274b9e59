"""`fairwave.simulate`: real training of every scheme over the same data, channels and initial model, in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.engine.round_record import Arrays, as_arrays
from fairwave.engine.state import RoundRecord
from fairwave.learning.model import Model
from fairwave.runs.order import DEFAULT_SCHEMES, Order, Track
from fairwave.runs.results import to_dataset
from fairwave.runs.training import Workshop, iterate
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario

if TYPE_CHECKING:
    import xarray as xr

Progress = Callable[[str, int, int, RoundRecord], None]
"""Told of scheme, seed, round (from 1) and record after every round."""


@dataclasses.dataclass(frozen=True)
class Simulation:
    """What a simulation leaves behind."""

    scenario: Scenario
    results: xr.Dataset
    """Dims scheme, seed, round, device."""


def simulate(
    scenario: Scenario | str | Path = "paper",
    schemes: Sequence[str] = DEFAULT_SCHEMES,
    seeds: Sequence[int] = (0,),
    *,
    rounds: int | None = None,
    model: Model | None = None,
    progress: Progress = lambda scheme, seed, number, record: None,
) -> Simulation:
    """Train every scheme with every seed, for the scenario's rounds or until its target is reached.

    `model` replaces the scenario's network: any pytree with `init` and `losses`. All schemes of a seed share data,
    channels and initial model, so adding one changes no other. Nothing is written; `fairwave run` keeps every round.
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    order = Order(scenario, tuple(schemes), tuple(seeds), scenario.run.num_rounds if rounds is None else rounds)
    workshop = Workshop(order, model)
    records: dict[Track, list[Arrays]] = {}
    layouts: dict[int, Arrays] = {}
    for track in order.tracks():
        cell = workshop.cell(track)
        layouts[track.seed] = workshop.layout(cell)
        records[track] = []
        for number, (_, record) in enumerate(iterate(cell, order.rounds), start=1):
            records[track].append(as_arrays(record))
            progress(*track, number, record)
    return Simulation(scenario=scenario, results=to_dataset(records, layouts, order.schemes, order.seeds))
