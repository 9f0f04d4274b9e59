"""What a cell is made of before its first round: who holds what, who is there, what may be spent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.data.partition import Holdings, holdings_of
from fairwave.data.sources import DataSet
from fairwave.engine import cheating
from fairwave.engine.battery import capacities_j, least_energy_j
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.device_side import local_training
from fairwave.engine.invitation import Window
from fairwave.engine.state import State
from fairwave.engine.station import Station
from fairwave.engine.steps import part_of
from fairwave.learning.model import Model
from fairwave.policy.fleet import Fleet, fleet
from fairwave.scenario.mobility_laws import Radial
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme
from fairwave.types import PerDevice
from fairwave.wireless.hardware import distances_m
from fairwave.wireless.mobility import Motion, motions


class Groundwork(Station):
    """All that a scenario and a scheme leave the same in every round."""

    def __init__(
        self, scenario: Scenario, scheme: Scheme, model: Model, data: DataSet, execution: Execution = BEST_HERE
    ) -> None:
        learning = scenario.learning
        self.execution = execution
        self.for_steps = execution.for_steps(learning.num_parameters(), learning.batch_size)
        self.holdings: Holdings = holdings_of(scenario, data.train_labels)
        super().__init__(scenario, scheme, model, (data.test_inputs, data.test_labels), self.holdings.counts)
        with jax.enable_x64(True):
            values, law = DeviceValues(scenario), scenario.cell.mobility
            self.fleet: Fleet = fleet(scenario, values)
            self.capacity_j = capacities_j(values, self.fleet.device)
            self.motion: Motion | None = None
            if isinstance(law, Radial):
                self.motion = motions(law, distances_m(scenario, values), scenario.run.seed)
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            self.trained_on = part_of(self.samples, jnp.asarray(self._as_many_as(self.test[1].size)))
            self.window = Window(self.holdings)
            self.cast = cheating.Cast(scenario.cheating.adversaries, scenario.cell.num_devices)
        self.training = local_training(scenario, scheme, model, self.guard.protection)

    def _as_many_as(self, count: int) -> np.ndarray:
        """Samples that devices hold at first, as many of each as there are test samples to set against them."""
        each = -(-count // len(self.holdings.counts))
        held = [self.holdings.of(device)[:each] for device in range(len(self.holdings.counts))]
        return np.concatenate(held)[:count]

    def can_go_on(self, state: State, next_round: int) -> bool:
        """Whether anybody who is there in that round, or comes later, can afford to take part."""
        able = self.can_afford(state, next_round)
        with jax.enable_x64(True):
            left_j = self.left_j(state)
            if left_j is not None:
                able &= np.asarray(left_j >= least_energy_j(self.fleet.device))
        return bool(able.any())

    def left_j(self, state: State) -> PerDevice | None:
        """Charge of each battery; None where there are none."""
        if self.capacity_j is None or state.used_energy_j is None:
            return None
        return self.capacity_j - state.used_energy_j
