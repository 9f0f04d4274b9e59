"""A cell as a simulation runs it: an access point, its devices, and the evaluation of their models."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.data.as_held import as_held
from fairwave.data.partition import holdings_of
from fairwave.data.sources import DataSet
from fairwave.double_precision import training_precision
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.devices import Devices
from fairwave.engine.end_reasons import EndReason, end_reason
from fairwave.engine.evaluation import Evaluator
from fairwave.engine.misbehaving import MisbehavingDevices
from fairwave.engine.programs import compile_ahead
from fairwave.engine.round import Witness, run_round
from fairwave.engine.round_record import RoundRecord
from fairwave.engine.server import AccessPoint
from fairwave.engine.state import State
from fairwave.errors import ScenarioError
from fairwave.learning.model import Model, Tree
from fairwave.scenario.parameters import Scenario
from fairwave.schemes.scheme import Scheme

LIGHT_ROUND = 64 << 20
"""Bytes of all participants' updates up to which a round may begin while the one before is still computed."""


def is_light(scenario: Scenario, model: Model) -> bool:
    """Whether the updates of all participants take little memory."""
    leaves = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
    size: int = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    return size * (scenario.cell.participants or scenario.cell.num_devices) <= LIGHT_ROUND


def may_be_one_program(scenario: Scenario, model: Model, execution: Execution) -> bool:
    """Whether rounds are computed as one program each, if that can be: never where noise comes from the host."""
    seeded = scenario.privacy.noise_source == "simulation"
    return seeded and execution.whole_rounds_here() and is_light(scenario, model)


class SimulatedCell:
    """A scenario and a scheme made ready to run."""

    def __init__(
        self,
        scenario: Scenario,
        scheme: Scheme,
        model: Model,
        data: DataSet,
        execution: Execution = BEST_HERE,
        *,
        first_model: Tree | None = None,
    ) -> None:
        """`first_model` has the parameters to begin with; left out, the scenario draws them."""
        self.scenario, self._execution = scenario, execution
        self._is_light = is_light(scenario, model)
        self._steps = execution.for_steps(scenario.learning.num_parameters(), scenario.learning.batch_size)
        holdings = holdings_of(scenario, data.train_labels, data.users)
        data = as_held(scenario, data, holdings)
        test, adversaries = (data.test_inputs, data.test_labels), scenario.cheating.adversaries
        self.access_point = AccessPoint(
            scenario,
            scheme,
            model,
            test,
            holdings.counts,
            stores_copies=bool(adversaries),
            first_model=first_model,
        )
        self.honest_devices = Devices(self.access_point, data, holdings, execution)
        self.devices: Devices | MisbehavingDevices = self.honest_devices
        if adversaries:
            self.devices = MisbehavingDevices(self.honest_devices, self.access_point)
        self.evaluator = Evaluator(self.access_point, self.honest_devices, execution)
        self.witness: Witness | None = None
        self._first_loss = None if scenario.run.optimal_loss is None else self._loss_above(scenario.run.optimal_loss)

    def _loss_above(self, optimal_loss: float) -> float:
        """Global loss of the first model, which must leave something to gain."""
        with training_precision():
            first = float(self.evaluator.loss(self.access_point.start().global_params, jnp.asarray(0)))
        if not first > optimal_loss:
            raise ScenarioError(
                f"run.optimal_loss: {optimal_loss:g} is not below the first model's loss, {first:g}; give the least "
                "loss that any model has"
            )
        return first

    def start(self) -> State:
        """Before the first round: everybody holds the same model."""
        server = self.access_point.start()
        return State(server, self.devices.start(server))

    def compile_ahead(self, state: State) -> None:
        """Compile the programs of a round side by side before the first round needs them one after the other."""
        if self.witness is not None or self._execution.form_here() == "sharded":
            return  # a witness wants values; several hosts have to compile in one order
        with training_precision():
            first = jnp.asarray(0)
            compile_ahead(lambda: run_round(self, state, first))

    def may_be_one_program(self) -> bool:
        """Whether its rounds are computed as one program each, if that can be: a witness wants values of its steps."""
        return self.witness is None and may_be_one_program(self.scenario, self.access_point.model, self._execution)

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with training_precision():
            state = state.with_places(state.server.copies.with_room().places)
            return run_round(self, state, jnp.asarray(round_index), self.evaluator.is_due(round_index))

    def begin_next(self, before: State, state: State, round_index: int) -> tuple[State, RoundRecord] | None:
        """Begin a round while the one before it is still computed; None where that has to be finished first.

        `before` is the state in which the round before began, and `state` the one that it leads to.
        """
        if not self._overlaps() or not before.server.copies.has_room(2):
            return None
        with training_precision():
            return run_round(self, state, jnp.asarray(round_index), self.evaluator.is_due(round_index))

    def _overlaps(self) -> bool:
        """Whether two rounds may be computed at once: where the host does not compute, and both fit into memory."""
        return self.witness is None and self._steps.form_here() == "vectorised" and self._is_light

    def copies(self, state: State) -> Tree:
        """Every device's copy as a model, with a leading device axis."""
        with training_precision():
            return state.server.copies.as_models(self.access_point.root)

    def end_reason(self, state: State, record: RoundRecord, next_round: int) -> EndReason | None:
        """Why the run ends before that round; None if it goes on."""
        affords = self.access_point.can_afford(state.server)
        there = self.access_point.will_be_there(next_round)
        charged = self.devices.have_charge(state.devices)
        return end_reason(self.scenario.run, record, there, affords, charged, self._first_loss)
