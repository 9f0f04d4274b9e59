"""`fairwave.simulate`: real training of every scheme over the same data, channels and initial model, in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.round_record import Arrays, as_arrays
from fairwave.extensions import COMPARED
from fairwave.learning.model import Model
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order, Schemes, Track
from fairwave.runs.progress_bar import ProgressBar
from fairwave.runs.results import to_dataset
from fairwave.runs.track_table import heads_for, track_rows
from fairwave.scenario.html_card import html_card
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.show import to_toml
from fairwave.trackers.callback import Callback, Training
from fairwave.trackers.callback_calls import CallbackCalls, followed
from fairwave.trackers.round_values import round_values

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, repr=False)
class Simulation:
    """What a simulation leaves behind."""

    scenario: Scenario
    results: xr.Dataset
    """Dims scheme, seed, round, device."""
    warnings: tuple[str, ...] = ()
    """What was to be said before training, such as a privacy budget that ends early; 'fairwave run' prints it."""

    def __repr__(self) -> str:
        found = self.results
        schemes = ", ".join(map(str, found["scheme"].values))
        seeds = ", ".join(map(str, found["seed"].values))
        return f"<Simulation: {schemes}; seeds {seeds}; {found.sizes['round']} rounds; {found.sizes['device']} devices>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_card(repr(self)[1:-1], heads_for(self.results), track_rows(self.results), to_toml(self.scenario))


def simulate(
    scenario: Scenario | str | Path = "paper",
    schemes: Schemes = COMPARED,
    seeds: Sequence[int] | int = (0,),
    *,
    rounds: int | None = None,
    model: Model | None = None,
    data: DataSet | None = None,
    init_from: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
) -> Simulation:
    """Train every scheme with every seed, for the scenario's rounds or until its target is reached.

    All schemes of a seed share data, channels and initial model, so adding one changes no other. Nothing is written;
    `fairwave run` keeps every round.

    Args:
        scenario: A scenario, the name of a preset, or a TOML file.
        schemes: One scheme or several, each a name or a `Scheme`.
        seeds: One seed or several.
        rounds: Number of communication rounds. Default: the scenario's number.
        model: Replaces the scenario's network: any pytree with `init` and `losses`.
        data: Replaces its data set.
        init_from: A `.safetensors` or `.npz` file with the first parameters, instead of random ones.
        callbacks: Objects that follow training, each a `Callback`. Training continues without one that fails.
        progress: Whether to show a progress bar. Default: only in a terminal or a notebook.

    Returns:
        The scenario and the results, an xarray dataset with dims scheme, seed, round and device.

    Example:
        >>> settings = ["learning.model=softmax", "learning.layer_sizes=[784, 10]", "data.samples_per_device=40"]
        >>> simulation = simulate(load_scenario("small", settings), "proposed", rounds=2)
        >>> dict(simulation.results.sizes)["round"]
        2
        >>> simulation.results["energy_j"].attrs["units"]
        'J'
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    order = Order.checked(scenario, schemes, seeds, rounds, init_from)
    experiment = Experiment(order, model=model, data=data)
    records: dict[Track, list[Arrays]] = {}
    layouts: dict[int, Arrays] = {}
    with ProgressBar(order.rounds * len(list(order.tracks())), progress) as bar:
        for track in order.tracks():
            cell = experiment.cell(track)
            layouts[track.seed] = experiment.layout(cell)
            training = Training(*track, order.rounds, 0, cell.scenario)
            with followed(CallbackCalls(callbacks, training)) as calls:
                records[track] = _train(cell, training, calls, bar)
    return Simulation(
        scenario=scenario,
        results=to_dataset(records, layouts, order.schemes, order.seeds),
        warnings=tuple(experiment.forewarnings()),
    )


def _train(cell: SimulatedCell, training: Training, calls: CallbackCalls, bar: ProgressBar) -> list[Arrays]:
    """The records of one scheme with one seed."""
    mode, records = mode_of(training.scenario.privacy), list[Arrays]()
    for done in run_rounds(cell, training.rounds):
        calls.ended = done.ended
        records.append(as_arrays(done.record))
        values = round_values(records[-1], done.round_index + 1, mode)
        calls.round(values)
        bar.take(training, values)
    bar.skip(training.rounds - len(records))
    return records
