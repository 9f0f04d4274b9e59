"""What a cell is made of before its first round: who holds what, who is there, what may be spent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.data.partition import Holdings, share_out
from fairwave.data.sources import DataSet
from fairwave.defences.judgement import in_use
from fairwave.engine import cheating
from fairwave.engine.attendance import Window
from fairwave.engine.battery import capacities_j, least_energy_j
from fairwave.engine.device import LocalTraining
from fairwave.engine.guard import Guard, parameters_of
from fairwave.engine.presence import presence
from fairwave.engine.scoring import Practice
from fairwave.engine.state import State
from fairwave.engine.steps import part_of
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.learning.model import Model
from fairwave.policy.access_point import uniform_levels
from fairwave.policy.fleet import Fleet, fleet
from fairwave.scenario.mobility import Radial
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.base import Scheme, Terms
from fairwave.types import PerDevice
from fairwave.wireless.fleet import distances_m
from fairwave.wireless.mobility import Motion, motions
from fairwave.wireless.path_loss import path_loss_db

MOST_TRIED = 1_000
"""Test samples on which every device's copy is tried."""


class Groundwork:
    """All that a scenario and a scheme leave the same in every round."""

    def __init__(
        self, scenario: Scenario, scheme: Scheme, model: Model, data: DataSet, num_threads: int | None = None
    ) -> None:
        self.scenario, self.scheme, self.model, self.num_threads = scenario, scheme, model, num_threads
        self.holdings: Holdings = share_out(
            scenario.data.partition,
            data.train_labels,
            scenario.cell.num_devices,
            scenario.run.seed,
            scenario.data.samples_per_device,
            scenario.data.refreshed_samples,
        )
        with jax.enable_x64(True):
            self.root = run_key(scenario.run.seed)
            values, law = DeviceValues(scenario), scenario.cell.mobility
            self.fleet: Fleet = fleet(scenario, values)
            self.capacity_j = capacities_j(values, self.fleet.device)
            self.presence = presence(values)
            self.motion: Motion | None = None
            if isinstance(law, Radial):
                self.motion = motions(law, distances_m(scenario, values), scenario.run.seed)
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            kept = self._kept_back(data.test_labels.size)
            self.test = (jnp.asarray(data.test_inputs[kept:]), jnp.asarray(data.test_labels[kept:]))
            self.tried_on = part_of(self.test, jnp.arange(min(MOST_TRIED, data.test_labels.size - kept)))
            self.own_samples = (
                (jnp.asarray(data.test_inputs[:kept]), jnp.asarray(data.test_labels[:kept])) if kept else None
            )
            self.guard = Guard(scenario, self.holdings.counts, parameters_of(model))
            self.trained_on = part_of(self.samples, jnp.asarray(self._as_many_as(self.test[1].size)))
            self.window = Window(self.holdings)
            self.devices = jnp.arange(scenario.cell.num_devices)
            self.cast = cheating.Cast(scenario.cheating.adversaries, scenario.cell.num_devices)
            privacy, learning = scenario.privacy, scenario.learning
            noisy = privacy.local_noise and scheme.noisy_updates
            self.local_std = float(uniform_levels(privacy, jnp.zeros(1))[0]) if noisy else 0.0
        budget, needed = self.guard.budget, self.needed()
        if budget is not None and not (budget >= needed).any():
            raise ScenarioError(
                f"privacy.max_epsilon: {scenario.privacy.max_epsilon:g} pays for {budget.max()} "
                f"{'local steps' if privacy.mode == 'provable' else 'rounds'} of a device, and taking part once needs "
                f"{needed.min():g} (compute.min_iterations); raise it, privacy.noise_multiplier, or the samples held"
            )
        self.exchanges = learning.gradient_exchange and scheme.exchanges
        attachment = scenario.peers.ditto_weight if scheme.personal else None
        self.training = LocalTraining(
            model, learning.batch_size, learning.learning_rate, self.local_std, self.guard.protection, attachment
        )
        self.practice = Practice(
            scheme, privacy, scenario.defences, Terms(scenario.peers, learning.learning_rate),
            None if self.own_samples is None else model,
        )  # fmt: skip

    def _kept_back(self, num_test: int) -> int:
        """Test samples that the access point uses, so that accuracy is measured on the others."""
        defences = self.scenario.defences
        if not (self.scheme.needs_samples or any(defence.needs_samples for _, defence in in_use(defences))):
            return 0
        if defences.validation_samples >= num_test:
            raise ScenarioError(
                f"defences.validation_samples: {defences.validation_samples} of {num_test} test samples leaves none to "
                "measure accuracy on; lower it"
            )
        return defences.validation_samples

    def _as_many_as(self, count: int) -> np.ndarray:
        """Samples that devices hold at first, as many of each as there are test samples to set against them."""
        each = -(-count // len(self.holdings.counts))
        held = [self.holdings.of(device)[:each] for device in range(len(self.holdings.counts))]
        return np.concatenate(held)[:count]

    def geometry(self) -> dict[str, np.ndarray]:
        """Where the devices are placed."""
        distance_m = distances_m(self.scenario, DeviceValues(self.scenario))
        path_gain = np.broadcast_to(np.asarray(self.fleet.device.path_gain), distance_m.shape)
        return {"distance_m": np.asarray(distance_m), "path_loss_db": path_loss_db(path_gain)}

    def can_go_on(self, state: State, next_round: int) -> bool:
        """Whether anybody who is there in that round, or comes later, can afford to take part."""
        able = np.ones(self.devices.shape, bool)
        if self.guard.budget is not None:
            able &= self.guard.budget - np.asarray(state.spent) >= self.needed()
        with jax.enable_x64(True):
            left_j = self.left_j(state)
            if left_j is not None:
                able &= np.asarray(left_j >= least_energy_j(self.fleet.device))
        if self.presence is not None:
            able &= self.presence.from_then_on(next_round)
        return bool(able.any())

    def left_j(self, state: State) -> PerDevice | None:
        """Charge of each battery; None where there are none."""
        if self.capacity_j is None or state.used_energy_j is None:
            return None
        return self.capacity_j - state.used_energy_j

    def needed(self) -> np.ndarray:
        """What the least participation in a round takes from each budget."""
        least = np.asarray(self.fleet.device.min_iterations) if self.guard.mode == "provable" else np.ones(())
        return np.broadcast_to(least, self.devices.shape)
