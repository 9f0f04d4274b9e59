"""`fairwave.simulate`: real training of every scheme over the same data, channels and initial model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from fairwave import schemes as registry
from fairwave.data import sources
from fairwave.engine.round import Cell
from fairwave.engine.state import RoundRecord, State
from fairwave.errors import ArgumentError, ScenarioError, did_you_mean
from fairwave.learning.model import Model, mlp
from fairwave.runs.results import to_dataset
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Run, Scenario

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
    schemes: Sequence[str] = ("proposed", "max_power"),
    seeds: Sequence[int] = (0,),
    *,
    rounds: int | None = None,
    model: Model | None = None,
    progress: Progress = lambda scheme, seed, number, record: None,
) -> Simulation:
    """Train every scheme with every seed, for the scenario's rounds or until its target is reached.

    `model` replaces the scenario's network: any pytree with `init` and `losses`. All schemes of a seed share data,
    channels and initial model, so adding one changes no other.
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    _check(scenario, schemes, seeds, rounds)
    data = sources.load(scenario.data.source)
    network = mlp(scenario.learning.layer_sizes) if model is None else model
    if model is None:
        _check_layers(scenario, data)
    runs: dict[tuple[str, int], list[RoundRecord]] = {}
    for seed in seeds:
        seeded = scenario.model_copy(update={"run": scenario.run.model_copy(update={"seed": seed})})
        for name in schemes:
            cell = Cell(seeded, registry.ALL[name], network, data)
            runs[name, seed] = []
            for number, (_, record) in enumerate(iterate(cell, rounds or scenario.run.num_rounds), start=1):
                runs[name, seed].append(record)
                progress(name, seed, number, record)
    return Simulation(scenario=scenario, results=to_dataset(runs, list(schemes), list(seeds)))


def iterate(
    cell: Cell, num_rounds: int, state: State | None = None, first: int = 0
) -> Iterator[tuple[State, RoundRecord]]:
    """Rounds from `first` on, each with the state after it, until the last or the scenario's target."""
    current = cell.start() if state is None else state
    for number in range(first, num_rounds):
        current, record = cell.round(current, number)
        record = jax.tree.map(np.asarray, record)
        yield current, record
        if _target_reached(cell.scenario.run, record):
            return


def _target_reached(run: Run, record: RoundRecord) -> bool:
    enough_loss = run.target_loss is not None and float(np.mean(record.loss)) <= run.target_loss
    enough_accuracy = run.target_accuracy is not None and float(record.test_accuracy) >= run.target_accuracy
    return enough_loss or enough_accuracy


def _check(scenario: Scenario, schemes: Sequence[str], seeds: Sequence[int], rounds: int | None) -> None:
    for name in schemes:
        if name not in registry.ALL:
            raise ArgumentError(f"schemes: unknown scheme '{name}'; {did_you_mean(name, registry.ALL)}")
    if not schemes or not seeds or len(set(schemes)) < len(schemes) or len(set(seeds)) < len(seeds):
        raise ArgumentError("schemes and seeds: give at least one of each, and none twice")
    if rounds is not None and rounds < 1:
        raise ArgumentError(f"rounds: {rounds} is too few; run at least one")
    privacy = scenario.privacy
    if privacy.mode != "paper":
        raise ScenarioError(f"privacy.mode: '{privacy.mode}' cannot be simulated by this version; choose 'paper'")
    if privacy.copies != "independent":
        raise ScenarioError(
            f"privacy.copies: '{privacy.copies}' cannot be simulated by this version; choose 'independent'"
        )
    if scenario.data.refreshed_samples:
        raise ScenarioError("data.refreshed_samples: cannot be simulated by this version; set it to 0")


def _check_layers(scenario: Scenario, data: sources.DataSet) -> None:
    first, last = scenario.learning.layer_sizes[0], scenario.learning.layer_sizes[-1]
    if first != data.num_features or last < data.num_classes:
        raise ScenarioError(
            f"learning.layer_sizes: {first} inputs and {last} outputs for data of {data.num_features} features and "
            f"{data.num_classes} classes; make them fit"
        )
