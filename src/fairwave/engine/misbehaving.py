"""Devices of which some misbehave: they wrap the honest ones, and change what those do in the rounds they act in.

An honest round knows nothing of this. Each act is a function of `adversaries`, mapped over the devices that do it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.adversaries.behaviour import Behaviour, Habit
from fairwave.double_precision import double_precision
from fairwave.engine.active_behaviour import Active
from fairwave.engine.behaviour_history import BehaviourHistory
from fairwave.engine.device_side import MeanGradient
from fairwave.engine.devices import Channels, Devices, Gradients, Participants, Plans, TrainedDevices
from fairwave.engine.invitation import Invitation
from fairwave.engine.model_copies import StoredCopies
from fairwave.engine.poisoned_samples import PoisonedSamples
from fairwave.engine.replaced_updates import replaced
from fairwave.engine.round import Concluded
from fairwave.engine.server import AccessPoint, part_of
from fairwave.engine.server_steps import Upload
from fairwave.engine.state import DeviceStates, ServerState
from fairwave.extensions import BEHAVIOURS
from fairwave.learning.model import Tree, flat_rows
from fairwave.policy.device_plan import DevicePlan, with_share
from fairwave.policy.effort import Effort
from fairwave.policy.effort_fit import EffortMemory
from fairwave.policy.fleet import Fleet, per_device_axes
from fairwave.types import Count, FlagPerDevice, PerDevice, Scalar

_LEAST_NOISE = 1e-12


class MisbehavingDevices:
    """The same steps as `Devices`, with the scenario's misbehaviour in them."""

    def __init__(self, honest: Devices, access_point: AccessPoint) -> None:
        self._honest, self._access_point = honest, access_point
        self._entries = access_point.scenario.cheating.adversaries
        self._num_devices = access_point.scenario.cell.num_devices
        with double_precision():
            self._poisoned = PoisonedSamples(honest.samples, honest.holdings, self._entries)

    def acting(self, round_index: Count) -> list[Active]:
        """The entries that act in a round."""
        number = int(round_index) + 1
        return [
            self._active(entry.behaviour, entry.devices, entry.strength)
            for entry in self._entries
            if entry.first_round <= number <= (entry.last_round or number)
        ]

    def _active(self, name: str, devices: Sequence[int], strength: float | None) -> Active:
        behaviour: Behaviour = BEHAVIOURS[name]
        given = behaviour.strength if strength is None else strength
        mask = np.isin(np.arange(self._num_devices), devices)
        return Active(behaviour, mask, 1.0 if given is None else given)

    @double_precision()
    def start(self, server: ServerState) -> DeviceStates:
        """Before the first round."""
        each, received = jnp.zeros(self._num_devices), server.copies.of_devices
        history = BehaviourHistory(
            received=received,
            sent=jax.tree.map(jnp.zeros_like, received),
            first_received=received,
            first_sent=jax.tree.map(jnp.zeros_like, received),
            usual_length=each,
            habit=Habit(share=jnp.ones_like(each)),
        )
        return dataclasses.replace(self._honest.start(server), behaviour=history)

    def busy(self, states: DeviceStates) -> FlagPerDevice | None:
        """A mask of the devices whose last update is late and still used when it comes; None where none ever is."""
        return self._honest.busy(states)

    def have_charge(self, states: DeviceStates) -> np.ndarray:
        """A mask of the devices whose battery covers another round."""
        return self._honest.have_charge(states)

    def draw_channels(self, round_index: Count) -> Channels:
        """Nobody can change its channel."""
        return self._honest.draw_channels(round_index)

    def plan(self, states: DeviceStates, invitation: Invitation, channels: Channels, steps_left: Array | None) -> Plans:
        """Some plan with beliefs of their own, and some do less than they planned."""
        acting = self.acting(channels.round_index)
        believing = dataclasses.replace(states, effort=_beliefs(acting, states.effort))
        plans = self._honest.plan(believing, invitation, channels, steps_left)
        cheating = jnp.asarray(np.any([each.mask for each in acting], axis=0)) if acting else plans.cheating
        plan = plans.plan
        if acting and states.behaviour is not None:
            plan = _reduced(acting, plan, channels.members, states.effort, states.behaviour)
        return dataclasses.replace(plans, plan=plan, cheating=cheating)

    def gather(
        self, states: DeviceStates, server: ServerState, invitation: Invitation, plans: Plans, round_index: Count
    ) -> Participants:
        """Some pool their copies, train on fewer samples, on wrong classes, or on samples that they have changed."""
        acting, chosen = self.acting(round_index), invitation.participants
        if acting:
            levels = self._access_point.rules.scheme.noise_levels(self._access_point.scenario.privacy, server.deviation)
            pooled = _pooled(acting, server.copies.of_devices, levels)
            server = dataclasses.replace(server, copies=StoredCopies(pooled))
        participants = self._honest.gather(states, server, invitation, plans, round_index)
        if not acting:
            return participants
        used, flipped = part_of(_training_data(acting, self._access_point.counts), chosen)
        everyone = self._poisoned.held(acting, self._honest.held(round_index))
        held = dataclasses.replace(participants.own.held, samples=everyone[chosen])
        own = dataclasses.replace(participants.own, trained_count=used, flipped=flipped, held=held)
        inputs, labels = self._poisoned.samples
        shared = dataclasses.replace(participants.shared, inputs=inputs, labels=labels)
        return dataclasses.replace(participants, shared=shared, own=own)

    def take_gradients(self, participants: Participants) -> Gradients:
        """Gradients are taken honestly."""
        return self._honest.take_gradients(participants)

    def train(self, participants: Participants, gradients: Gradients, mean: MeanGradient | None) -> TrainedDevices:
        """Whatever is trained is trained honestly, on the data that was chosen for it.

        Whoever plants a backdoor leaves out what the exchange of gradients changes in the local problem: that would
        turn its training towards what all others learn.
        """
        acting = self.acting(participants.shared.round_index)
        if mean is not None:
            weight = self._access_point.scenario.learning.gradient_weight
            gradients = _uncorrected(acting, participants, gradients, mean, weight)
        return self._honest.train(participants, gradients, mean)

    def upload(self, states: DeviceStates, participants: Participants, trained: TrainedDevices, plans: Plans) -> Upload:
        """Some send something else than their update."""
        if states.behaviour is not None:
            acting = self.acting(participants.shared.round_index)
            sends = np.asarray(plans.plan.energy_j > 0.0)  # not so in outage, and for whoever sits out
            updates = replaced(acting, trained.updates, participants, states.behaviour, sends)
            trained = dataclasses.replace(trained, updates=updates)
        return self._honest.upload(states, participants, trained, plans)

    def after_round(
        self,
        states: DeviceStates,
        participants: Participants,
        trained: TrainedDevices,
        plans: Plans,
        upload: Upload,
        concluded: Concluded,
    ) -> DeviceStates:
        """Beside what honest devices remember, what misbehaviour will make use of."""
        after = self._honest.after_round(states, participants, trained, plans, upload, concluded)
        if states.behaviour is None:
            return after
        acting = self.acting(participants.shared.round_index)
        history = _remembered(
            acting, states.behaviour, participants, upload, concluded.server.deviation, ~plans.cheating
        )
        return dataclasses.replace(after, behaviour=history)


def _beliefs(acting: Sequence[Active], memory: EffortMemory) -> EffortMemory:
    """What devices believe about effort when they plan."""
    effort = memory.effort
    for each in acting:
        belief = each.behaviour.planning_belief
        if belief is not None:
            effort = each.only(belief(effort, jnp.full_like(effort.decay_j, each.strength)), effort)
    return dataclasses.replace(memory, effort=effort)


def _reduced(
    acting: Sequence[Active], plan: DevicePlan, members: Fleet, memory: EffortMemory, history: BehaviourHistory
) -> DevicePlan:
    """What devices do of what they planned."""
    share = jnp.ones_like(plan.energy_j)
    for each in acting:
        part = each.behaviour.share_of_iterations
        if part is not None:
            share = each.only(part(jnp.full_like(share, each.strength)), share)
        if each.behaviour.adapts is not None:
            share = each.only(history.habit.share, share)

    def one(member: Fleet, own: DevicePlan, part: Scalar, effort: Effort) -> DevicePlan:
        return with_share(member.device, member.preferences, effort, own, part)

    reduced: DevicePlan = jax.vmap(one, in_axes=(per_device_axes(members), 0, 0, 0))(
        members, plan, share, memory.effort
    )
    return reduced


def _pooled(acting: Sequence[Active], received: Tree, noise_std: PerDevice) -> Tree:
    """The models that devices start from: a coalition's members share their best guess."""
    for each in acting:
        if each.behaviour.pools_copies:
            members = jnp.asarray(each.mask)
            precision = jnp.where(members, 1.0 / jnp.maximum(noise_std, _LEAST_NOISE) ** 2, 0.0)
            weights = (precision / jnp.sum(precision)).astype(jnp.float32)
            guess = jax.tree.map(lambda leaf, w=weights: jnp.tensordot(w, leaf, axes=1)[None], received)
            received = each.only(guess, received)
    return received


def _training_data(acting: Sequence[Active], counts: Array) -> tuple[Array, Array]:
    """How many of their samples devices train on, and whether on the wrong classes."""
    share, flipped = np.ones(counts.shape), np.zeros(counts.shape, bool)
    for each in acting:
        if each.behaviour.share_of_data is not None:
            share[each.mask] = float(each.behaviour.share_of_data(jnp.asarray(each.strength)))
        flipped |= each.mask & each.behaviour.flips_labels
    return jnp.maximum(1, jnp.floor(counts * share)).astype(counts.dtype), jnp.asarray(flipped)


def _uncorrected(
    acting: Sequence[Active], participants: Participants, gradients: Gradients, mean: MeanGradient, weight: float
) -> Gradients:
    """The gradients as participants train with them: with the weighted mean for its own, a device corrects nothing."""
    planting = [each.mask for each in acting if each.behaviour.trigger is not None]
    if not planting or gradients.gradients is None:
        return gradients
    free = jnp.asarray(np.any(planting, axis=0))[participants.own.index]
    own = jax.tree.map(
        lambda each, of_all: jnp.where(free.reshape(-1, *[1] * of_all.ndim), weight * of_all[None], each),
        gradients.gradients,
        mean.gradient,
    )
    return dataclasses.replace(gradients, gradients=own)


def _remembered(
    acting: Sequence[Active],
    history: BehaviourHistory,
    participants: Participants,
    upload: Upload,
    deviation: PerDevice,
    honest: FlagPerDevice,
) -> BehaviourHistory:
    """The history as the next round will see it."""
    chosen = participants.own.index
    lengths = jnp.sqrt(jnp.sum(flat_rows(upload.updates)[0] ** 2, axis=1))
    usual = jnp.where(honest[chosen], lengths, history.usual_length[chosen])
    habit = history.habit
    for each in acting:
        if each.behaviour.adapts is not None:
            strength = jnp.full(deviation.shape, each.strength)
            habit = each.only(each.behaviour.adapts(habit, deviation, strength), habit)
    sent = jax.tree.map(lambda old, new: old.at[chosen].set(new), history.sent, upload.updates)
    has_sent = flat_rows(history.first_sent)[0].any(axis=1)
    return BehaviourHistory(
        received=participants.copies,
        sent=sent,
        first_received=history.first_received,
        first_sent=jax.tree.map(
            lambda old, new: jnp.where(has_sent.reshape(-1, *[1] * (new.ndim - 1)), old, new), history.first_sent, sent
        ),
        usual_length=history.usual_length.at[chosen].set(usual),
        habit=habit,
    )
