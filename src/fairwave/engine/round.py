"""One round of one scheme: the eight steps of the paper's system, each a function from another folder.

1 channel, 2 plan, 3 gradient exchange, 4 local training, 5 noise and upload, 6 aggregation, 7 release, 8 effort fit.
Policies compute in double precision, models in single.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fairwave.data.partition import Holdings, share_out
from fairwave.data.sources import DataSet
from fairwave.engine.attendance import Window, attendance
from fairwave.engine.device import LocalTraining, Work, gradient_map, loss_map, received_loss_map, training_map
from fairwave.engine.state import RoundRecord, State
from fairwave.engine.steps import (
    aggregate_and_release,
    among_all,
    corrections,
    first_state,
    fit_efforts,
    loss_of_all,
    part_of,
    plan_and_send,
    test_accuracy,
)
from fairwave.keys import run_key
from fairwave.learning.model import Model, Tree
from fairwave.policy.access_point import uniform_levels
from fairwave.policy.fleet import Fleet, fleet
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.base import Scheme
from fairwave.types import Count
from fairwave.wireless.fleet import distances_m
from fairwave.wireless.path_loss import path_loss_db


class Cell:
    """A scenario and a scheme made ready to run."""

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
            self.fleet: Fleet = fleet(scenario, DeviceValues(scenario))
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            self.test = (jnp.asarray(data.test_inputs), jnp.asarray(data.test_labels))
            self.window = Window(self.holdings)
            self.devices = jnp.arange(scenario.cell.num_devices)
            privacy, learning = scenario.privacy, scenario.learning
            noisy = privacy.local_noise and scheme.noisy_updates
            self.local_std = float(uniform_levels(privacy, jnp.zeros(1))[0]) if noisy else 0.0
        self.training = LocalTraining(model, learning.batch_size, learning.learning_rate, self.local_std)

    def geometry(self) -> dict[str, np.ndarray]:
        """Where the devices stand."""
        distance_m = distances_m(self.scenario, DeviceValues(self.scenario))
        path_gain = np.broadcast_to(np.asarray(self.fleet.device.path_gain), distance_m.shape)
        return {"distance_m": np.asarray(distance_m), "path_loss_db": path_loss_db(path_gain)}

    def start(self) -> State:
        """Before the first round: everybody holds the same random model."""
        window = self.scenario.utility.effort_window
        with jax.enable_x64(True):
            state: State = first_state(self.model, window, self.root, self.fleet.effort, self.devices)
        return state

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with jax.enable_x64(True):
            return self._round(state, jnp.asarray(round_index))

    def _round(self, state: State, number: Count) -> tuple[State, RoundRecord]:
        scenario, scheme, size = self.scenario, self.scheme, self.scenario.cell
        present = attendance(
            size.num_devices, size.participants or size.num_devices, size.straggler_probability, self.root, number
        )
        sent = plan_and_send(
            scheme.plan, scenario.radio, self.fleet, state.memory, self.root, number, self.devices, present
        )
        plan, delivered = sent.plan, sent.delivered
        everyone = (self.window.at(number), self.window.counts)
        received, (held, counts), iterations, arrived = part_of(
            (state.received, everyone, plan.local_iterations, sent.arrives), present.chosen
        )
        received_loss, correction = self._exchange(received, (held, counts), arrived)
        trained = training_map(self.training)(
            (self.root, number, *self.samples),
            Work(received, correction, held, counts, iterations, present.chosen),
            self.num_threads,
        )
        after, noise_std = aggregate_and_release(
            scheme, scenario.privacy, state, trained.update, present, delivered, self.root, number, self.devices
        )
        utility = scenario.utility
        memory = fit_efforts(utility.effort_fit, utility.effort_ridge, state.memory, plan, after.deviation, delivered)
        true_losses = loss_map(self.model)((after.global_params, *self.samples), everyone, self.num_threads)
        told = among_all(
            {"received_loss": received_loss, "loss": trained.loss, "update_norm": trained.update_norm}, present
        )
        record = RoundRecord(
            plan=plan,
            participating=present.participating,
            late=sent.late,
            delivered=delivered,
            **told,
            deviation=after.deviation,
            noise_std=noise_std,
            global_loss=loss_of_all(true_losses, self.window.counts),
            test_accuracy=test_accuracy(self.model, after.global_params, *self.test),
        )
        return State(after.global_params, after.received, after.deviation, after.score, memory), record

    def _exchange(
        self, received: Tree, own: tuple[Array, Array], arrived: Bool[Array, " participant"]
    ) -> tuple[Float[Array, " participant"], Tree]:
        """Loss of each received copy, and the correction that the mean gradient makes to each local problem."""
        if not self.scenario.learning.gradient_exchange:
            loss = received_loss_map(self.model)(self.samples, (received, *own), self.num_threads)
            return loss, jax.tree.map(jnp.zeros_like, received)
        loss, gradients = gradient_map(self.model)(self.samples, (received, *own), self.num_threads)
        return loss, corrections(self.scenario.learning.gradient_weight, gradients, arrived)
