"""One round of one scheme: the eight steps of the paper's system, each a function from another folder.

1 channel, 2 plan, 3 gradient exchange, 4 local training, 5 noise and upload, 6 aggregation, 7 release, 8 effort fit.
Policies compute in double precision, models in single.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairwave.engine import cheating
from fairwave.engine.access_point import aggregate_and_release
from fairwave.engine.attendance import Attendance
from fairwave.engine.device import (
    Work,
    accuracy_map,
    gradient_map,
    loss_map,
    received_loss_map,
    training_map,
)
from fairwave.engine.groundwork import Groundwork
from fairwave.engine.scoring import Uploads
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
from fairwave.learning.model import Tree
from fairwave.policy.fleet import Fleet
from fairwave.types import Count


class Cell(Groundwork):
    """A scenario and a scheme made ready to run."""

    def start(self) -> State:
        """Before the first round: everybody holds the same random model."""
        window = self.scenario.utility.effort_window
        with jax.enable_x64(True):
            state: State = self.equipped(first_state(self.model, window, self.root, self.fleet.effort, self.devices))
            return dataclasses.replace(
                state,
                past=self.cast.start(state.received),
                personal=state.received if self.scheme.personal else None,
                used_energy_j=None if self.capacity_j is None else jnp.zeros_like(self.capacity_j),
            )

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with jax.enable_x64(True):
            return self._round(state, jnp.asarray(round_index))

    def _round(self, state: State, number: Count) -> tuple[State, RoundRecord]:
        scenario, scheme = self.scenario, self.scheme
        present, members = self._present(state, number)
        distance_now_m = None
        if self.motion is not None:
            members, distance_now_m = in_place(members, self.motion, scenario.radio.path_loss_exponent, number)
        roles = self.cast.roles(int(number))
        sent = plan_and_send(
            scheme.plan, scenario.radio, members, cheating.beliefs(roles, state.memory), self.root, number,
            self.devices, present, self.left_j(state),
        )  # fmt: skip
        present = dataclasses.replace(present, participating=sent.participating)
        plan, delivered, copies = sent.plan, sent.delivered, state.received
        if roles and state.past is not None:
            plan = cheating.plans(roles, plan, members, state.memory, state.past)
            copies = cheating.copies(roles, copies, scheme.levels(scenario.privacy, state.deviation))
        everyone = (self.window.at(number), self.counts)
        used, flipped = cheating.holdings(roles, self.counts)
        received, (held, counts), iterations, arrived, used, flipped, personal = part_of(
            (copies, everyone, plan.local_iterations, sent.arrives, used, flipped, state.personal), present.chosen
        )
        # A gradient is not judged by itself: whoever was caught has none that counts, and a noisy copy to take it at.
        trusted = arrived if state.dossier is None else arrived & ~state.dossier.caught[present.chosen]
        received_loss, correction = self._exchange(number, received, (held, counts, present.chosen), trusted)
        told_loss = received_loss
        trained = training_map(self.training)(
            (self.root, number, *self.samples),
            Work(received, correction, held, used, counts, iterations, flipped, present.chosen, personal),
            self.num_threads,
        )
        if personal is not None:
            received_loss = received_loss_map(self.model)(self.samples, (personal, held, counts), self.num_threads)
            received = personal
            personal = jax.tree.map(lambda old, new: old.at[present.chosen].set(new), state.personal, trained.personal)
        updates, past = trained.update, state.past
        if past is not None:
            updates = cheating.updates(roles, updates, copies, past, self.root, number, present.chosen)
        after = aggregate_and_release(
            self.practice, state, Uploads(updates, trained.told_noise_std, told_loss, counts), present, delivered,
            self.own_samples, self.root, number, self.devices,
        )  # fmt: skip
        dishonest = cheating.anybody(roles, scenario.cell.num_devices)
        if past is not None:
            past = cheating.remembered(roles, past, copies, updates, ~dishonest, after.deviation, present.chosen)
        utility = scenario.utility
        scored = delivered & (self.guard.mode != "device")
        memory = fit_efforts(utility.effort_fit, utility.effort_ridge, state.memory, plan, after.deviation, scored)
        true_losses = loss_map(self.model)((after.params, *self.samples), everyone, self.num_threads)
        told = among_all(
            {
                "received_loss": received_loss,
                "received_accuracy": accuracy_map(self.model)(self.tried_on, received, self.num_threads),
                "loss": trained.loss,
                "update_norm": trained.update_norm,
            },
            present,
        )
        record = RoundRecord(
            plan=plan,
            participating=present.participating,
            late=sent.late,
            cheating=jnp.asarray(dishonest),
            delivered=delivered,
            findings=after.findings,
            served=after.served,
            distance_now_m=distance_now_m,
            **told,
            deviation=after.deviation,
            noise_std=after.noise_std,
            release_std=after.own_std,
            release_sensitivity=after.own_sensitivity,
            global_loss=loss_of_all(true_losses, self.counts),
            test_accuracy=test_accuracy(self.model, after.params, *self.test),
            membership_auc=membership_auc(self.model, after.params, self.trained_on, self.test),
        )
        spent = state.spent + (plan.local_iterations if self.guard.mode == "provable" else delivered)
        state = State(
            global_params=after.params,
            received=after.received,
            deviation=after.deviation,
            score=after.score,
            memory=memory,
            spent=spent,
            past=past,
            dossier=after.dossier,
            scheme_memory=after.memory,
            personal=personal,
            used_energy_j=None if state.used_energy_j is None else state.used_energy_j + plan.energy_j,
        )
        return state, record

    def _present(self, state: State, number: Count) -> tuple[Attendance, Fleet]:
        """Who takes part, and the fleet as its budgets leave it."""
        present = self.invited(state, number)
        if self.guard.budget is None:
            return present, self.fleet
        left = jnp.asarray(self.guard.budget) - state.spent
        members: tuple[Attendance, Fleet] = within_budget(
            present, self.fleet, left, jnp.asarray(self.needed()), self.guard.mode == "provable"
        )
        return members

    def _exchange(
        self, number: Count, received: Tree, own: tuple[Array, Array, Array], arrived: Bool[Array, " participant"]
    ) -> tuple[Float[Array, " participant"], Tree]:
        """Loss of each received copy, and the correction that the mean gradient makes to each local problem."""
        held, counts, index = own
        if not self.exchanges:
            loss = received_loss_map(self.model)(self.samples, (received, held, counts), self.num_threads)
            return loss, jax.tree.map(jnp.zeros_like, received)
        loss, gradients = gradient_map(self.model, self.guard.protection)(
            (self.root, number, *self.samples), (received, held, counts, index), self.num_threads
        )
        return loss, corrections(self.scenario.learning.gradient_weight, gradients, arrived)
