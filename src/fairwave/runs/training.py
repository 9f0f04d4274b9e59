"""From an order to rounds: the cells of every track, and their rounds until the last or the target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import jax
import numpy as np

from fairwave import schemes as registry
from fairwave.data import sources
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.round import Cell
from fairwave.engine.round_record import Arrays, mean_of_participants
from fairwave.engine.state import RoundRecord, State
from fairwave.errors import ScenarioError
from fairwave.learning.model import Model
from fairwave.learning.models import model_of
from fairwave.runs.order import Order, Track
from fairwave.scenario.parameters import Run, Scenario


class Workshop:
    """Builds the cell of each track; the data set is read once."""

    def __init__(self, order: Order, model: Model | None = None, execution: Execution = BEST_HERE) -> None:
        self.order, self.execution = order, execution
        self.data = sources.load(order.scenario.data.source)
        if model is None:
            check_layers(order.scenario, self.data)
        self.model = model_of(order.scenario.learning) if model is None else model
        data = self.data
        self._data_digest = digest(data.train_inputs, data.train_labels, data.test_inputs, data.test_labels)

    def cell(self, track: Track) -> Cell:
        """A track's cell."""
        return Cell(self.order.seeded(track.seed), registry.ALL[track.scheme], self.model, self.data, self.execution)

    def fingerprint(self, cell: Cell) -> bytes:
        """Of all that a track reads from outside: first the data, then who holds what and the fleet."""
        setup = [cell.holdings.samples, *map(np.asarray, jax.tree.leaves((cell.fleet, cell.capacity_j, cell.presence)))]
        return self._data_digest + digest(*setup)

    def layout(self, cell: Cell) -> Arrays:
        """Where the devices stand, and how many samples of each class they hold at first."""
        labels, classes = self.data.train_labels, self.data.num_classes
        held = [np.bincount(labels[cell.holdings.of(k)], minlength=classes) for k in range(len(cell.holdings.counts))]
        return {**cell.geometry(), "samples": np.stack(held)}


def digest(*arrays: np.ndarray) -> bytes:
    """Of arrays, their shapes and types."""
    taken = hashlib.blake2b(digest_size=16)
    for array in arrays:
        taken.update(repr((array.shape, array.dtype.str)).encode())
        taken.update(np.ascontiguousarray(array).tobytes())
    return taken.digest()


def iterate(
    cell: Cell, num_rounds: int, state: State | None = None, first: int = 0
) -> Iterator[tuple[State, RoundRecord]]:
    """Rounds from `first` on, each with the state after it, until the last, the target, or nobody can take part."""
    current = cell.start() if state is None else state
    for number in range(first, num_rounds):
        current, record = cell.round(current, number)
        record = jax.device_get(record)
        yield current, record
        if target_reached(cell.scenario.run, record) or not cell.can_go_on(current, number + 1):
            return


def target_reached(run: Run, record: RoundRecord) -> bool:
    """Whether the mean device loss or the test accuracy is as good as asked for."""
    enough_loss = run.target_loss is not None and mean_of_participants(record.loss) <= run.target_loss
    enough_accuracy = run.target_accuracy is not None and float(record.test_accuracy) >= run.target_accuracy
    return enough_loss or enough_accuracy


def check_layers(scenario: Scenario, data: sources.DataSet) -> None:
    """Refuse a network that does not fit the data."""
    first, last = scenario.learning.layer_sizes[0], scenario.learning.layer_sizes[-1]
    if first != data.num_features or last < data.num_classes:
        raise ScenarioError(
            f"learning.layer_sizes: {first} inputs and {last} outputs for data of {data.num_features} features and "
            f"{data.num_classes} classes; make them fit"
        )
