"""One round of one scheme: the eight steps of the paper's system, each a function from another folder.

1 channel, 2 plan, 3 gradient exchange, 4 local training, 5 noise and upload, 6 aggregation, 7 release, 8 effort fit.
Policies compute in double precision, models in single.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fairwave.data.partition import Holdings, share_out
from fairwave.data.sources import DataSet
from fairwave.engine import cheating
from fairwave.engine.access_point import aggregate_and_release
from fairwave.engine.attendance import Attendance, Window, attendance
from fairwave.engine.battery import capacities_j, least_energy_j
from fairwave.engine.device import (
    LocalTraining,
    Work,
    gradient_map,
    loss_map,
    private_gradient_map,
    received_loss_map,
    training_map,
)
from fairwave.engine.guard import Guard, parameters_of
from fairwave.engine.presence import presence
from fairwave.engine.state import RoundRecord, State
from fairwave.engine.steps import (
    among_all,
    corrections,
    first_state,
    fit_efforts,
    in_place,
    loss_of_all,
    membership_auc,
    part_of,
    plan_and_send,
    test_accuracy,
    within_budget,
)
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.learning.model import Model, Tree
from fairwave.policy.access_point import uniform_levels
from fairwave.policy.fleet import Fleet, fleet
from fairwave.scenario.mobility import Radial
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.base import Scheme
from fairwave.types import Count, PerDevice
from fairwave.wireless.fleet import distances_m
from fairwave.wireless.mobility import Motion, motions
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
            values, law = DeviceValues(scenario), scenario.cell.mobility
            self.fleet: Fleet = fleet(scenario, values)
            self.capacity_j = capacities_j(values, self.fleet.device)
            self.presence = presence(values)
            self.motion: Motion | None = None
            if isinstance(law, Radial):
                self.motion = motions(law, distances_m(scenario, values), scenario.run.seed)
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            self.test = (jnp.asarray(data.test_inputs), jnp.asarray(data.test_labels))
            self.guard = Guard(scenario, self.holdings.counts, parameters_of(model))
            self.trained_on = part_of(self.samples, jnp.asarray(self._as_many_as(data.test_labels.size)))
            self.window = Window(self.holdings)
            self.devices = jnp.arange(scenario.cell.num_devices)
            self.cast = cheating.Cast(scenario.cheating.adversaries, scenario.cell.num_devices)
            privacy, learning = scenario.privacy, scenario.learning
            noisy = privacy.local_noise and scheme.noisy_updates
            self.local_std = float(uniform_levels(privacy, jnp.zeros(1))[0]) if noisy else 0.0
        budget, needed = self.guard.budget, self._needed()
        if budget is not None and not (budget >= needed).any():
            raise ScenarioError(
                f"privacy.max_epsilon: {scenario.privacy.max_epsilon:g} pays for {budget.max()} "
                f"{'local steps' if privacy.mode == 'provable' else 'rounds'} of a device, and taking part once needs "
                f"{needed.min():g} (compute.min_iterations); raise it, privacy.noise_multiplier, or the samples held"
            )
        self.training = LocalTraining(
            model, learning.batch_size, learning.learning_rate, self.local_std, self.guard.protection
        )

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

    def start(self) -> State:
        """Before the first round: everybody holds the same random model."""
        window = self.scenario.utility.effort_window
        with jax.enable_x64(True):
            state: State = first_state(self.model, window, self.root, self.fleet.effort, self.devices)
            unused_j = None if self.capacity_j is None else jnp.zeros_like(self.capacity_j)
            return dataclasses.replace(state, past=self.cast.start(state.received), used_energy_j=unused_j)

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with jax.enable_x64(True):
            return self._round(state, jnp.asarray(round_index))

    def can_go_on(self, state: State, next_round: int) -> bool:
        """Whether anybody who is there in that round, or comes later, can afford to take part."""
        able = np.ones(self.devices.shape, bool)
        if self.guard.budget is not None:
            able &= self.guard.budget - np.asarray(state.spent) >= self._needed()
        with jax.enable_x64(True):
            left_j = self._left_j(state)
            if left_j is not None:
                able &= np.asarray(left_j >= least_energy_j(self.fleet.device))
        if self.presence is not None:
            able &= self.presence.from_then_on(next_round)
        return bool(able.any())

    def _left_j(self, state: State) -> PerDevice | None:
        """Charge of each battery; None where there are none."""
        if self.capacity_j is None or state.used_energy_j is None:
            return None
        return self.capacity_j - state.used_energy_j

    def _needed(self) -> np.ndarray:
        """What the least participation in a round takes from each budget."""
        least = np.asarray(self.fleet.device.min_iterations) if self.guard.mode == "provable" else np.ones(())
        return np.broadcast_to(least, self.devices.shape)

    def _round(self, state: State, number: Count) -> tuple[State, RoundRecord]:
        scenario, scheme = self.scenario, self.scheme
        present, members = self._present(state, number)
        distance_now_m = None
        if self.motion is not None:
            members, distance_now_m = in_place(members, self.motion, scenario.radio.path_loss_exponent, number)
        roles = self.cast.roles(int(number))
        sent = plan_and_send(
            scheme.plan, scenario.radio, members, cheating.beliefs(roles, state.memory), self.root, number,
            self.devices, present, self._left_j(state),
        )  # fmt: skip
        present = dataclasses.replace(present, participating=sent.participating)
        plan, delivered, copies = sent.plan, sent.delivered, state.received
        if roles and state.past is not None:
            plan = cheating.plans(roles, plan, members, state.memory, state.past)
            copies = cheating.copies(roles, copies, scheme.levels(scenario.privacy, state.deviation))
        everyone = (self.window.at(number), self.window.counts)
        used, flipped = cheating.holdings(roles, self.window.counts)
        received, (held, counts), iterations, arrived, used, flipped = part_of(
            (copies, everyone, plan.local_iterations, sent.arrives, used, flipped), present.chosen
        )
        received_loss, correction = self._exchange(number, received, (held, counts, present.chosen), arrived)
        trained = training_map(self.training)(
            (self.root, number, *self.samples),
            Work(received, correction, held, used, counts, iterations, flipped, present.chosen),
            self.num_threads,
        )
        updates, past = trained.update, state.past
        if past is not None:
            updates = cheating.updates(roles, updates, copies, past, self.root, number, present.chosen)
        after = aggregate_and_release(
            scheme, scenario.privacy, state, updates, trained.told_noise_std, present, delivered, self.root,
            number, self.devices,
        )  # fmt: skip
        dishonest = cheating.anybody(roles, scenario.cell.num_devices)
        if past is not None:
            past = cheating.remembered(roles, past, copies, updates, ~dishonest, after.deviation, present.chosen)
        utility = scenario.utility
        scored = delivered & (self.guard.mode != "device")
        memory = fit_efforts(utility.effort_fit, utility.effort_ridge, state.memory, plan, after.deviation, scored)
        true_losses = loss_map(self.model)((after.params, *self.samples), everyone, self.num_threads)
        told = among_all(
            {"received_loss": received_loss, "loss": trained.loss, "update_norm": trained.update_norm}, present
        )
        record = RoundRecord(
            plan=plan,
            participating=present.participating,
            late=sent.late,
            cheating=jnp.asarray(dishonest),
            delivered=delivered,
            served=after.served,
            distance_now_m=distance_now_m,
            **told,
            deviation=after.deviation,
            noise_std=after.noise_std,
            release_std=after.own_std,
            release_sensitivity=after.own_sensitivity,
            global_loss=loss_of_all(true_losses, self.window.counts),
            test_accuracy=test_accuracy(self.model, after.params, *self.test),
            membership_auc=membership_auc(self.model, after.params, self.trained_on, self.test),
        )
        spent = state.spent + (plan.local_iterations if self.guard.mode == "provable" else delivered)
        used_j = None if state.used_energy_j is None else state.used_energy_j + plan.energy_j
        return State(after.params, after.received, after.deviation, after.score, memory, spent, past, used_j), record

    def _present(self, state: State, number: Count) -> tuple[Attendance, Fleet]:
        """Who takes part, and the fleet as its budgets leave it."""
        size = self.scenario.cell
        present = attendance(
            size.num_devices, size.participants or size.num_devices, size.straggler_probability, self.root, number,
            self.presence,
        )  # fmt: skip
        if self.guard.budget is None:
            return present, self.fleet
        left = jnp.asarray(self.guard.budget) - state.spent
        members: tuple[Attendance, Fleet] = within_budget(
            present, self.fleet, left, jnp.asarray(self._needed()), self.guard.mode == "provable"
        )
        return members

    def _exchange(
        self, number: Count, received: Tree, own: tuple[Array, Array, Array], arrived: Bool[Array, " participant"]
    ) -> tuple[Float[Array, " participant"], Tree]:
        """Loss of each received copy, and the correction that the mean gradient makes to each local problem."""
        held, counts, index = own
        if not self.scenario.learning.gradient_exchange:
            loss = received_loss_map(self.model)(self.samples, (received, held, counts), self.num_threads)
            return loss, jax.tree.map(jnp.zeros_like, received)
        if self.guard.protection is None:
            loss, gradients = gradient_map(self.model)(self.samples, (received, held, counts), self.num_threads)
        else:
            loss, gradients = private_gradient_map(self.model, self.guard.protection)(
                (self.root, number, *self.samples), (received, held, counts, index), self.num_threads
            )
        return loss, corrections(self.scenario.learning.gradient_weight, gradients, arrived)
