"""From an order to what runs it: the model, the data, and the cell or access point of every track."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from fairwave.data import sources
from fairwave.engine.cell import SimulatedCell, may_be_one_program
from fairwave.engine.cell_group import CellGroup
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import Arrays, RoundRecord
from fairwave.engine.server import AccessPoint
from fairwave.engine.state import State
from fairwave.errors import ScenarioError
from fairwave.extensions import FEATURES, SCHEMES
from fairwave.learning.features import featured
from fairwave.learning.model import Model
from fairwave.learning.models import count_parameters, model_of
from fairwave.policy.certify import certify_plans
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.forewarnings import forewarnings, outlook_of_run
from fairwave.runs.order import Order, Track
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.partition_laws import Own
from fairwave.types import Key


class Experiment:
    """An order with its data, which is read once, and its model."""

    def __init__(
        self,
        order: Order,
        *,
        model: Model | None = None,
        data: sources.DataSet | None = None,
        execution: Execution = BEST_HERE,
    ) -> None:
        order.check()
        self.order, self._execution = order, execution
        self.data = sources.load_for(order.scenario.data) if data is None else data
        self.data.check_target(order.scenario.data.target, "the data set")
        if model is None:
            check_layers(order.scenario, self.data)
        self.model = model_of(order.scenario.learning) if model is None else model
        self._first_model = None if order.init_from is None else order.init_from.parameters(self.model)

    @functools.cached_property
    def _test(self) -> tuple[np.ndarray, np.ndarray]:
        """Test data as the model sees them; features are computed once for all tracks."""
        return featured(self.order.scenario.learning, self.data.test_inputs), self.data.test_labels

    @functools.cached_property
    def seen(self) -> sources.DataSet:
        """All data as the model sees them; an access point of a federation needs no features of training data."""
        train = featured(self.order.scenario.learning, self.data.train_inputs)
        return dataclasses.replace(self.data, train_inputs=train, test_inputs=self._test[0])

    def forewarnings(self) -> list[str]:
        """What the experiment may surprise with, for its first seed."""
        scenario = self.order.seeded(self.order.seeds[0])
        return forewarnings(outlook_of_run(scenario, self.order.rounds, self.data, count_parameters(self.model)))

    def cell(self, track: Track) -> SimulatedCell:
        """A track's cell, for a simulation."""
        scenario = self.order.seeded(track.seed)
        return SimulatedCell(
            scenario, SCHEMES[track.scheme], self.model, self.seen, self._execution, first_model=self._first_model
        )

    def computes_together(self) -> bool:
        """Whether tracks of one scheme are computed side by side, if their rounds can be one program."""
        return may_be_one_program(self.order.scenario, self.model, self._execution)

    def access_point(self, track: Track, counts: np.ndarray, noise_root: Key | None) -> AccessPoint:
        """A track's access point, for a federation: it keeps every device's copy, to send it."""
        return AccessPoint(
            self.order.seeded(track.seed),
            SCHEMES[track.scheme],
            self.model,
            self._test,
            counts,
            noise_root=noise_root,
            stores_copies=True,
            first_model=self._first_model,
        )

    def fingerprint(self, cell: SimulatedCell) -> bytes:
        """A digest of all that a track reads from outside: first the data, then who holds what and the fleet."""
        devices = cell.honest_devices
        fleet = jax.tree.leaves((devices.fleet, devices.capacity_j, cell.access_point.presence))
        return self._data_digest + digest(devices.holdings.samples, *map(np.asarray, fleet))

    @functools.cached_property
    def _data_digest(self) -> bytes:
        data = self.data
        return digest(data.train_inputs, data.train_labels, data.test_inputs, data.test_labels)

    def layout(self, cell: SimulatedCell) -> Arrays:
        """Where the devices stand, what they spend before the first round, and how many samples they hold at first.

        Of each class where nothing is proved, or where the scenario publishes that; else, and where there are no
        classes, in all.
        """
        labels, holdings = self.data.train_labels, cell.honest_devices.holdings
        privacy = self.order.scenario.privacy
        placed = {**cell.access_point.geometry(), **cell.honest_devices.preparation()}
        hidden = mode_of(privacy).proves and not privacy.publish_class_counts
        if hidden or self.data.target == "number":
            return {**placed, "samples": np.asarray(holdings.counts)[:, None]}
        classes = self.data.num_classes
        held = [np.bincount(labels[holdings.of(k)], minlength=classes) for k in range(len(holdings.counts))]
        return {**placed, "samples": np.stack(held)}


def digest(*arrays: np.ndarray) -> bytes:
    """A digest of arrays with their shapes and types."""
    taken = hashlib.blake2b(digest_size=16)
    for array in arrays:
        taken.update(repr((array.shape, array.dtype.str)).encode())
        taken.update(np.ascontiguousarray(array).tobytes())
    return taken.digest()


@dataclasses.dataclass(frozen=True)
class CompletedRound:
    """One round of a track, as it ended."""

    round_index: int
    state: State
    record: RoundRecord
    ended: EndReason | None
    """Why it was the last, if it was so before all rounds were done."""


def run_rounds(
    cell: SimulatedCell, num_rounds: int, state: State | None = None, first: int = 0
) -> Iterator[CompletedRound]:
    """Rounds from `first` on, until the last, the target, or nobody can take part. Every plan is certified."""
    for (done,) in run_together(CellGroup([cell]), num_rounds, None if state is None else [state], first):
        assert done is not None  # the only cell goes on until it ends
        yield done


def run_together(
    group: CellGroup, num_rounds: int, states: Sequence[State] | None = None, first: int = 0
) -> Iterator[Sequence[CompletedRound | None]]:
    """The same rounds of several cells; None for one that has ended before."""
    before = [cell.start() for cell in group.cells] if states is None else states
    if first < num_rounds:
        group.compile_ahead(before)
    begun, ended = None, [False] * len(group.cells)
    for round_index in range(first, num_rounds):
        current = group.round(before, round_index) if begun is None else begun
        after = [state for state, _ in current]
        # The next round is computed while this one is looked at; should this be the last, nobody looks at the next.
        begun = group.begin_next(before, after, round_index + 1) if round_index + 1 < num_rounds else None
        done = [
            None if over else _completed(cell, round_index, state, record)
            for cell, (state, record), over in zip(group.cells, current, ended, strict=True)
        ]
        yield done
        ended = [one is None or one.ended is not None for one in done]
        if all(ended):
            return
        before = after


def _completed(cell: SimulatedCell, round_index: int, state: State, record: RoundRecord) -> CompletedRound:
    """A round whose values have arrived, and whose plans are certified."""
    record = jax.device_get(record)
    certify_plans(record.plan, f"{cell.access_point.rules.scheme.name}, round {round_index + 1}, ")
    return CompletedRound(round_index, state, record, cell.end_reason(state, record, round_index + 1))


def check_layers(scenario: Scenario, data: sources.DataSet) -> None:
    """Refuse a network that does not fit the data.

    Where devices bring their own, only the number of features counts: it is no secret, and one record's class is.
    """
    learning, own = scenario.learning, isinstance(scenario.data.partition, Own)
    wanted, last = FEATURES[learning.features].num_inputs(learning), learning.layer_sizes[-1]
    needed = 1 if data.target == "number" else data.num_classes
    if wanted != data.num_features or (last < needed and not own):
        sizes = "layer_sizes" if learning.features == "none" else "image_shape and layer_sizes"
        kind = "a number to predict" if data.target == "number" else f"{needed} classes"
        raise ScenarioError(
            f"learning.{sizes}: {wanted} inputs and {last} outputs for data of {data.num_features} features and "
            f"{kind}; make them fit"
        )
