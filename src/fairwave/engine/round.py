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
from fairwave.engine.access_point import aggregate_and_release, can_be_made_again
from fairwave.engine.device_programs import (
    Common,
    Held,
    Mean,
    accuracy_map,
    gradient_map,
    loss_map,
    received_loss_map,
    training_map,
)
from fairwave.engine.device_side import Work
from fairwave.engine.groundwork import Groundwork
from fairwave.engine.invitation import Attendance
from fairwave.engine.model_copies import Copies, all_made
from fairwave.engine.release_noise import is_broadcast
from fairwave.engine.scoring import Uploads
from fairwave.engine.state import RoundRecord, State
from fairwave.engine.steps import (
    Keeping,
    among_all,
    first_state,
    fit_efforts,
    for_each,
    in_place,
    loss_of_all,
    mean_of_gradients,
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
            state: State = self.equipped(
                first_state(self.model, window, self.root, self.fleet.effort, self.devices, self._kept())
            )
            return dataclasses.replace(
                state,
                past=self.cast.start(state.received),
                personal=for_each(state.global_params, self.devices) if self.scheme.personal else None,
                used_energy_j=None if self.capacity_j is None else jnp.zeros_like(self.capacity_j),
            )

    def _kept(self) -> Keeping:
        if self.scenario.cheating.adversaries or not can_be_made_again(self.practice):
            return "models"
        return "copies alike" if is_broadcast(self.practice) else "copies"

    def copies(self, state: State) -> Tree:
        """Every device's copy as a model, with a leading device axis."""
        with jax.enable_x64(True):
            return all_made(state.received, self.root) if isinstance(state.received, Copies) else state.received

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with jax.enable_x64(True), jax.default_matmul_precision("float32"):
            if isinstance(state.received, Copies):
                state = dataclasses.replace(state, received=state.received.with_room())
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
        plan, delivered, copies, models = sent.plan, sent.delivered, state.received, None
        if isinstance(state.received, Copies):
            copies, models = state.received.each, state.received.models
        if roles and state.past is not None:
            plan = cheating.plans(roles, plan, members, state.memory, state.past)
            copies = cheating.copies(roles, copies, scheme.levels(scenario.privacy, state.deviation))
        everyone = Held(self.window.at(number), self.counts)
        used, flipped = cheating.holdings(roles, self.counts)
        received, held, iterations, arrived, used, flipped, personal = part_of(
            (copies, everyone, plan.local_iterations, sent.arrives, used, flipped, state.personal), present.chosen
        )
        common = Common(self.root, number, *self.samples, models)
        # A gradient is not judged by itself: whoever was caught has none that counts, and a noisy copy to take it at.
        trusted = arrived if state.dossier is None else arrived & ~state.dossier.caught[present.chosen]
        received_loss, gradients, mean = self._exchange(common, received, held, present.chosen, trusted)
        told_loss = received_loss
        trained = training_map(self.training, scenario.learning.gradient_weight)(
            dataclasses.replace(common, mean=mean),
            Work(received, gradients, held.samples, used, held.count, iterations, flipped, present.chosen, personal),
            self.for_steps,
        )
        del gradients  # a model's memory for every participant
        if personal is not None:
            received_loss = received_loss_map(self.model)(common, (personal, held), self.execution)
            received = personal
            personal = jax.tree.map(lambda old, new: old.at[present.chosen].set(new), state.personal, trained.personal)
        updates, past = trained.update, state.past
        if past is not None:
            updates = cheating.updates(roles, updates, copies, past, self.root, number, present.chosen)
        after = aggregate_and_release(
            self.practice, state, Uploads(updates, trained.told_noise_std, told_loss, held.count), present, delivered,
            self.own_samples, self.root, number, self.devices,
        )  # fmt: skip
        dishonest = cheating.anybody(roles, scenario.cell.num_devices)
        if past is not None:
            past = cheating.remembered(roles, past, copies, updates, ~dishonest, after.deviation, present.chosen)
        utility = scenario.utility
        scored = delivered & (self.guard.mode != "device")
        memory = fit_efforts(utility.effort_fit, utility.effort_ridge, state.memory, plan, after.deviation, scored)
        told = among_all(
            {"received_loss": received_loss, "loss": trained.loss, "update_norm": trained.update_norm}
            | self._tried(common, received),
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
            **self._evaluated(common, after.params, everyone),
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
        self, common: Common, received: Tree, held: Held, index: Array, arrived: Bool[Array, " participant"]
    ) -> tuple[Float[Array, " participant"], Tree | None, Mean | None]:
        """Loss of each received copy, each participant's gradient, and the mean of those that arrived."""
        if not self.exchanges:
            return received_loss_map(self.model)(common, (received, held), self.for_steps), None, None
        loss, gradients = gradient_map(self.model, self.guard.protection)(
            common, (received, held, index), self.for_steps
        )
        return loss, gradients, Mean(mean_of_gradients(gradients, arrived), jnp.any(arrived))

    def _is_evaluated(self, number: Count) -> bool:
        return (int(number) + 1) % self.scenario.run.evaluate_every == 0

    def _tried(self, common: Common, received: Tree) -> dict[str, Array]:
        """Accuracy of each participant's copy, in rounds in which models are evaluated."""
        if not self._is_evaluated(common.number):
            return {"received_accuracy": jnp.full((), jnp.nan)}
        inputs, labels = self.tried_on
        common = dataclasses.replace(common, inputs=inputs, labels=labels)
        return {"received_accuracy": accuracy_map(self.model)(common, received, self.execution)}

    def _evaluated(self, common: Common, params: Tree, everyone: Held) -> dict[str, Array]:
        """How good the new true model is, and what it gives away, in rounds in which models are evaluated."""
        if not self._is_evaluated(common.number):
            return dict.fromkeys(("global_loss", "test_accuracy", "membership_auc"), jnp.full((), jnp.nan))
        losses = loss_map(self.model)((params, dataclasses.replace(common, models=None)), everyone, self.execution)
        return {
            "global_loss": loss_of_all(losses, self.counts),
            "test_accuracy": test_accuracy(self.model, params, *self.test),
            "membership_auc": membership_auc(self.model, params, self.trained_on, self.test),
        }
