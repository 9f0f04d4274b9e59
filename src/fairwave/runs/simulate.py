"""`fairwave.simulate`: real training of every scheme over the same data, channels and initial model, in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.data.sources import DataSet
from fairwave.engine.round_record import Arrays, RoundRecord, as_arrays
from fairwave.learning.model import Model
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import DEFAULT_SCHEMES, Order, Track
from fairwave.runs.results import to_dataset
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.schemes.scheme import Scheme

if TYPE_CHECKING:
    import xarray as xr

OnRound = Callable[[str, int, int, RoundRecord], None]
"""Called with scheme, seed, round (from 1) and record after every round."""


@dataclasses.dataclass(frozen=True)
class Simulation:
    """What a simulation leaves behind."""

    scenario: Scenario
    results: xr.Dataset
    """Dims scheme, seed, round, device."""


def simulate(
    scenario: Scenario | str | Path = "paper",
    schemes: Sequence[str | Scheme] = DEFAULT_SCHEMES,
    seeds: Sequence[int] = (0,),
    *,
    rounds: int | None = None,
    model: Model | None = None,
    data: DataSet | None = None,
    init_from: str | Path | None = None,
    progress: OnRound = lambda scheme, seed, number, record: None,
) -> Simulation:
    """Train every scheme with every seed, for the scenario's rounds or until its target is reached.

    A scheme is a name or a `Scheme`. `model` replaces the scenario's network: any pytree with `init` and `losses`;
    `data` replaces its data set. All schemes of a seed share data, channels and initial model, so adding one changes no
    other. Nothing is written; `fairwave run` keeps every round.
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    order = Order.checked(scenario, schemes, seeds, rounds, init_from)
    experiment = Experiment(order, model=model, data=data)
    records: dict[Track, list[Arrays]] = {}
    layouts: dict[int, Arrays] = {}
    for track in order.tracks():
        cell = experiment.cell(track)
        layouts[track.seed] = experiment.layout(cell)
        records[track] = []
        for done in run_rounds(cell, order.rounds):
            records[track].append(as_arrays(done.record))
            progress(*track, done.round_index + 1, done.record)
    return Simulation(scenario=scenario, results=to_dataset(records, layouts, order.schemes, order.seeds))
