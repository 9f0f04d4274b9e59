"""All devices of a simulated cell: every step maps one device's function (`engine.device_side`) over them."""

from __future__ import annotations

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Int

from fairwave.data.partition import Holdings, places_held
from fairwave.data.sources import DataSet
from fairwave.double_precision import double_precision
from fairwave.engine.battery import capacities_j, least_energy_j, preparation_j, preparation_s
from fairwave.engine.device_map import Execution
from fairwave.engine.device_programs import copy_loss_program, gradient_program, rounding_program, training_program
from fairwave.engine.device_side import (
    HeldSamples,
    Limits,
    LocalTraining,
    MeanGradient,
    SharedInputs,
    TrainingInputs,
    channel_of,
    local_training,
    next_drift,
    place_of,
    prepare,
)
from fairwave.engine.invitation import Invitation, straggle
from fairwave.engine.late_updates import LateUpload, late_places
from fairwave.engine.on_the_way import OnTheWay, Sent, after_round, busy, found, nothing_on_the_way, observed_energy_j
from fairwave.engine.programs import program
from fairwave.engine.round import Concluded
from fairwave.engine.server import AccessPoint, for_each, part_of
from fairwave.engine.server_steps import Upload
from fairwave.engine.state import DeviceStates, ServerState
from fairwave.keys import Stream
from fairwave.learning.model import Tree
from fairwave.policy.device_plan import Case, DevicePlan
from fairwave.policy.effort import Effort
from fairwave.policy.effort_fit import EffortMemory, Strategy, fit_effort, no_memory
from fairwave.policy.fleet import Fleet, fleet, per_device_axes
from fairwave.policy.passes import kept_to_their_data
from fairwave.policy.rule import Rule
from fairwave.scenario.mobility_laws import Radial
from fairwave.scenario.parameters import Radio
from fairwave.scenario.peers import Peers
from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Count, Flag, FlagPerDevice, Key, PerDevice, Scalar
from fairwave.wireless.fading import Channel
from fairwave.wireless.hardware import distances_m, refuse_slow
from fairwave.wireless.mobility import Motion, motions


@dataclasses.dataclass(frozen=True)
class Channels:
    """Every device's channel in a round, and the devices where they are."""

    channel: Channel
    members: Fleet
    distance_m: PerDevice | None
    """None where nobody moves."""
    round_index: Count


class Plans(eqx.Module):
    """What devices do in a round, and which of their messages get through, with a leading device axis."""

    plan: DevicePlan
    takes_part: FlagPerDevice
    """A mask of the invited devices whose budget and battery cover their plan."""
    arrives: FlagPerDevice
    """The channel carries what the device sends, such as its gradient."""
    late: FlagPerDevice
    """Its update comes after the deadline."""
    delivered: FlagPerDevice
    """Its update arrives in time and is used."""
    cheating: FlagPerDevice
    """It does not do as it should."""
    distance_m: PerDevice | None
    """None where nobody moves."""

    def accepted(self, invitation: Invitation) -> Invitation:
        """The invitation as devices have taken it up."""
        return dataclasses.replace(invitation, participating=self.takes_part)


@dataclasses.dataclass(frozen=True)
class Participants:
    """What a round's participants compute with."""

    shared: SharedInputs
    own: TrainingInputs
    """With a leading participant axis."""
    copies: Tree
    """All devices' parts of the copies, with a leading device axis."""


@dataclasses.dataclass(frozen=True)
class Gradients:
    """What participants compute at the copy that they received, with a leading participant axis."""

    received_loss: PerDevice
    gradients: Tree | None
    """None where none are exchanged."""


@dataclasses.dataclass(frozen=True)
class TrainedDevices:
    """What the participants' training gave, with a leading participant axis."""

    updates: Tree
    reported_noise_std: PerDevice
    reported_loss: PerDevice
    """Loss of the received copy."""
    received_loss: PerDevice
    """Loss of the model that the device uses: its copy, or its own where it has one."""
    loss: PerDevice
    update_norm: PerDevice
    personal_models: Tree | None


class Devices:
    """All devices of a cell, all of them honest."""

    def __init__(self, access_point: AccessPoint, data: DataSet, holdings: Holdings, execution: Execution) -> None:
        scenario, scheme, model = access_point.scenario, access_point.rules.scheme, access_point.model
        self._access_point, self._scenario, self._scheme, self._model = access_point, scenario, scheme, model
        self._execution = execution.for_steps(scenario.learning.num_parameters(), scenario.learning.batch_size)
        self._training = local_training(scenario, scheme, model, access_point.enforced.protection)
        self.holdings = holdings
        self._most_held = int(self.holdings.counts.max())
        with double_precision():
            values, law = DeviceValues(scenario), scenario.cell.mobility
            self.fleet: Fleet = kept_to_their_data(fleet(scenario, values), scenario, holdings.counts)
            refuse_slow(self.fleet.device)
            self.capacity_j = capacities_j(values, self.fleet.device, scenario.learning, holdings.counts)
            self._motion: Motion | None = None
            if isinstance(law, Radial):
                self._motion = motions(law, distances_m(scenario, values), scenario.run.seed)
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            self._held, self._shares = jnp.asarray(self.holdings.samples), jnp.asarray(self.holdings.shares)
            self._nobody = jnp.zeros(access_point.devices.shape, bool)
        self._indices = access_point.devices

    @double_precision()
    def start(self, server: ServerState) -> DeviceStates:
        """Before the first round."""
        return DeviceStates(
            effort=_first_efforts(self._scenario.utility.effort_window, self.fleet.effort, self._indices),
            personal_models=None if self._scheme.personal_models is None else self._alike(server.global_params),
            used_energy_j=None if self.capacity_j is None else jnp.zeros_like(self.capacity_j),
            behaviour=None,
            on_the_way=self._nothing_on_the_way(server),
            drift=None
            if self._scheme.drift is None
            else self._alike(jax.tree.map(jnp.zeros_like, server.global_params)),
        )

    @double_precision()
    def preparation(self) -> dict[str, np.ndarray]:
        """Energy and time that every device spends on features before the first round; empty where it needs none."""
        learning, counts = self._scenario.learning, self.holdings.counts
        energy_j = preparation_j(self.fleet.device, learning, counts)
        if not energy_j.any():
            return {}
        time_s = preparation_s(self.fleet.device, learning, counts)
        return {"preparation_energy_j": energy_j, "preparation_s": np.broadcast_to(time_s, energy_j.shape)}

    def _alike(self, params: Tree) -> Tree:
        models: Tree = for_each(params, self._indices)
        return models

    def _nothing_on_the_way(self, server: ServerState) -> OnTheWay | None:
        places = late_places(self._scenario)
        return nothing_on_the_way(server.global_params, places, self._indices.size) if places else None

    def busy(self, states: DeviceStates) -> FlagPerDevice | None:
        """A mask of the devices whose last update is late and still used when it comes; None where none ever is."""
        return None if states.on_the_way is None else busy(states.on_the_way, self._indices.size)

    def charge_left_j(self, states: DeviceStates) -> PerDevice | None:
        """Charge of each battery; None where there are none."""
        if self.capacity_j is None or states.used_energy_j is None:
            return None
        return self.capacity_j - states.used_energy_j

    @double_precision()
    def have_charge(self, states: DeviceStates) -> np.ndarray:
        """A mask of the devices whose battery covers another round."""
        left_j = self.charge_left_j(states)
        if left_j is None:
            return np.ones(self._indices.shape, bool)
        return np.asarray(left_j >= least_energy_j(self.fleet.device))

    def draw_channels(self, round_index: Count) -> Channels:
        """Every device's channel, from where it is in the round."""
        members, distance_m = self.fleet, None
        if self._motion is not None:
            exponent = self._scenario.radio.path_loss_exponent
            members, distance_m = _placed(members, self._motion, exponent, round_index)
        root, radio = self._access_point.root, self._scenario.radio
        channel = _drawn(radio, root, round_index, self._indices, members)
        return Channels(channel, members, distance_m, round_index)

    def plan(self, states: DeviceStates, invitation: Invitation, channels: Channels, steps_left: Array | None) -> Plans:
        """Every invited device's choice, and what becomes of its messages."""
        limits = Limits(invitation.participating, steps_left, self.charge_left_j(states))
        rule, radio = self._scheme.plan, self._scenario.radio
        plans: Plans = _planned(
            rule, radio, (channels.members, channels.channel), states.effort, limits, invitation.stragglers
        )
        return plans if channels.distance_m is None else dataclasses.replace(plans, distance_m=channels.distance_m)

    def gather(
        self, states: DeviceStates, server: ServerState, invitation: Invitation, plans: Plans, round_index: Count
    ) -> Participants:
        """What the participants compute with: their copies, samples and iterations."""
        everyone = HeldSamples(self.held(round_index), self._access_point.counts)
        own = TrainingInputs(
            copy=server.copies.of_devices,
            own_gradient=None,
            held=everyone,
            trained_count=everyone.count,
            flipped=self._nobody,
            iterations=plans.plan.local_iterations,
            index=self._indices,
            personal_model=states.personal_models,
            drift=states.drift,
        )
        shared = SharedInputs(
            self._access_point.root,
            round_index,
            *self.samples,
            models=server.copies.shared_models,
            make_copy=server.copies.make_copy,
            drift=self._told(server),
        )
        return Participants(shared, part_of(own, invitation.participants), server.copies.of_devices)

    def _told(self, server: ServerState) -> Tree | None:
        """The access point's vector, where devices correct their gradients by what they carry."""
        drift = self._scheme.drift
        if drift is None:
            return None
        flat, unravel = ravel_pytree(server.global_params)
        return unravel(jnp.zeros_like(flat) if drift.told is None else drift.told(server.scheme_memory))

    def take_gradients(self, participants: Participants) -> Gradients:
        """Loss of each received copy, and each participant's gradient there, if gradients are exchanged."""
        own = participants.own
        if not self._access_point.exchanges_gradients:
            loss = copy_loss_program(self._model)(participants.shared, (own.copy, own.held), self._execution)
            return Gradients(loss, None)
        program = gradient_program(self._model, self._training.protection)
        loss, gradients = program(participants.shared, (own.copy, own.held, own.index), self._execution)
        return Gradients(loss, self._as_sent(Stream.GRADIENT_ROUNDING, participants, gradients))

    def train(self, participants: Participants, gradients: Gradients, mean: MeanGradient | None) -> TrainedDevices:
        """Local training of every participant."""
        shared, own = participants.shared, participants.own
        if mean is not None:
            shared = dataclasses.replace(shared, mean=mean)
            own = dataclasses.replace(own, own_gradient=gradients.gradients)
        trained = training_program(self._training)(shared, own, self._execution)
        received_loss = gradients.received_loss
        if own.personal_model is not None:
            received_loss = copy_loss_program(self._model)(
                participants.shared.with_models(), (own.personal_model, own.held), self._execution
            )
        return TrainedDevices(
            updates=trained.update,
            reported_noise_std=trained.reported_noise_std,
            reported_loss=gradients.received_loss,
            received_loss=received_loss,
            loss=trained.loss,
            update_norm=trained.update_norm,
            personal_models=trained.personal_model,
        )

    def upload(self, states: DeviceStates, participants: Participants, trained: TrainedDevices, plans: Plans) -> Upload:
        """What participants send."""
        return Upload(
            updates=self._as_sent(Stream.UPDATE_ROUNDING, participants, trained.updates),
            reported_noise_std=trained.reported_noise_std,
            reported_loss=trained.reported_loss,
            num_samples=participants.own.held.count,
            delivered=plans.delivered,
            charge=self._access_point.rules.mode.charge(plans.plan.local_iterations, plans.delivered),
            late=self._found(states, participants.shared.round_index),
        )

    def _as_sent(self, stream: Stream, participants: Participants, values: Tree) -> Tree:
        """What arrives of participants' gradients or updates, in the bits in which they are sent."""
        if self._scenario.learning.update_bits == 32:
            return values
        return rounding_program(stream)(participants.shared, (values, participants.own.index), self._execution)

    def _found(self, states: DeviceStates, round_index: Count) -> LateUpload | None:
        """The late updates of earlier rounds that arrive in this one."""
        if states.on_the_way is None:
            return None
        late: LateUpload = found(
            states.on_the_way, self._straggling(round_index), round_index, self._scenario.learning.late_rounds
        )
        return late

    def _straggling(self, round_index: Count) -> FlagPerDevice:
        flags: FlagPerDevice = straggle(
            self._indices.size, self._scenario.cell.straggler_probability, self._access_point.root, round_index
        )
        return flags

    def after_round(
        self,
        states: DeviceStates,
        participants: Participants,
        trained: TrainedDevices,
        plans: Plans,
        upload: Upload,
        concluded: Concluded,
    ) -> DeviceStates:
        """What devices remember: the effort that their deviation tells, their models, their used energy."""
        utility, plan = self._scenario.utility, plans.plan
        observed = upload.delivered if self._access_point.rules.mode.scores_devices else self._nobody
        compute_energy_j, learning = plan.compute_energy_j, participants.own.index
        if states.on_the_way is not None and concluded.late is not None:  # they learn from what they did then
            scored_late, learning = concluded.late.age > 0, self._indices
            then_j = observed_energy_j(states.on_the_way, scored_late.size)
            observed, compute_energy_j = observed | scored_late, jnp.where(scored_late, then_j, compute_energy_j)
        seen = (compute_energy_j, concluded.server.deviation, observed)
        effort = _fitted(utility.effort_fit, utility.effort_ridge, learning, states.effort, seen)
        personal = states.personal_models
        if personal is not None:
            chosen = participants.own.index
            personal = jax.tree.map(lambda old, new: old.at[chosen].set(new), personal, trained.personal_models)
        return DeviceStates(
            effort=effort,
            personal_models=personal,
            used_energy_j=None if states.used_energy_j is None else states.used_energy_j + plan.energy_j,
            behaviour=states.behaviour,
            on_the_way=self._on_the_way(states, participants, plans, upload),
            drift=self._next_drift(states, participants, upload),
        )

    def _next_drift(self, states: DeviceStates, participants: Participants, upload: Upload) -> Tree | None:
        """What devices carry into the next round, from what they have sent."""
        if states.drift is None:
            return None
        own, shared = participants.own, participants.shared
        each = (own.drift, upload.updates, upload.delivered[own.index])
        after = _drifted(self._training, self._scenario.peers, (shared.round_index, shared.drift), each)
        return jax.tree.map(lambda old, new: old.at[own.index].set(new), states.drift, after)

    def _on_the_way(
        self, states: DeviceStates, participants: Participants, plans: Plans, upload: Upload
    ) -> OnTheWay | None:
        """The late updates that have not arrived by the end of the round."""
        if states.on_the_way is None:
            return None
        chosen, number = participants.own.index, participants.shared.round_index
        sent = Sent(
            updates=upload.updates,
            reported_noise_std=upload.reported_noise_std,
            reported_loss=upload.reported_loss,
            num_samples=upload.num_samples,
            compute_energy_j=plans.plan.compute_energy_j[chosen],
            carried=plans.arrives[chosen],
        )
        late, late_rounds = plans.late & plans.takes_part, self._scenario.learning.late_rounds
        after: OnTheWay = after_round(
            states.on_the_way, self._straggling(number), number, late_rounds, (late, chosen), sent
        )
        return after

    def held(self, round_index: Count) -> Int[Array, "device held"]:
        """The samples that every device holds in a round, padded to the largest holding."""
        if self.holdings.refreshed == 0:
            return self._held
        held: Array = _slid(self._held, self._shares, round_index * self.holdings.refreshed, self._most_held)
        return held


@program(static_argnums=0)
def _first_efforts(window: int, effort: Effort, devices: Array) -> EffortMemory:
    each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, devices.shape), effort)
    return jax.vmap(lambda one: no_memory(one, window))(each)


@program(static_argnums=2)
def _placed(members: Fleet, motion: Motion, exponent: float, round_index: Count) -> tuple[Fleet, PerDevice]:
    """The devices where they are in a round, and their distances."""
    axes = per_device_axes(members)
    placed, distance_m = jax.vmap(lambda one, way: place_of(one, way, exponent, round_index), in_axes=(axes, 0))(
        members, motion
    )
    # Only the path gain differs from before: what all devices share stays without a device axis.
    device = dataclasses.replace(members.device, path_gain=placed.device.path_gain)
    return dataclasses.replace(members, device=device), distance_m


@program(static_argnums=0)
def _drawn(radio: Radio, root: Key, round_index: Count, indices: Array, members: Fleet) -> Channel:
    """Every device's channel in a round."""

    def one(index: Count, deadline_s: Scalar) -> Channel:
        return channel_of(radio, root, round_index, index, deadline_s)

    deadline_s = members.device.deadline_s
    return jax.vmap(one, in_axes=(0, 0 if deadline_s.ndim else None))(indices, deadline_s)


@program(static_argnums=(0, 1))
def _planned(
    rule: Rule,
    radio: Radio,
    devices: tuple[Fleet, Channel],
    memory: EffortMemory,
    limits: Limits,
    stragglers: FlagPerDevice,
) -> Plans:
    """Every device's plan over its channel."""
    members, channel = devices
    axes = (per_device_axes(members), 0, 0, 0)
    prepared = jax.vmap(functools.partial(prepare, rule, radio), in_axes=axes)(members, channel, memory, limits)
    plan = prepared.plan
    late = stragglers & (plan.case != int(Case.OUTAGE))
    return Plans(
        plan=plan,
        takes_part=prepared.takes_part,
        arrives=prepared.arrives,
        late=late,
        delivered=prepared.arrives & ~late,
        cheating=jnp.zeros(late.shape, bool),
        distance_m=None,
    )


@program(static_argnums=(0, 1))
def _fitted(
    strategy: Strategy,
    ridge: float,
    learning: Int[Array, " learning"],
    memory: EffortMemory,
    seen: tuple[PerDevice, PerDevice, FlagPerDevice],
) -> EffortMemory:
    """Every device's effort estimate after the round.

    Only the devices in `learning` may have a new one. `seen` is the energy that each device spent on computing, the
    deviation that it received, and whether it received one for this energy.
    """

    def one(own: EffortMemory, spent_j: Scalar, received: Scalar, observed: Flag) -> EffortMemory:
        return fit_effort(strategy, own, spent_j, received, observed=observed, ridge=ridge)

    theirs = jax.vmap(one)(*jax.tree.map(lambda leaf: leaf[learning], (memory, *seen)))
    fitted: EffortMemory = jax.tree.map(lambda all_, new: all_.at[learning].set(new), memory, theirs)
    return fitted


@program(static_argnums=(0, 1))
def _drifted(training: LocalTraining, peers: Peers, told: tuple[Count, Tree], each: tuple[Tree, Tree, Array]) -> Tree:
    """What participants carry into the next round."""
    return jax.vmap(lambda own: next_drift(training, peers, *told, own))(each)


@program(static_argnums=3)
def _slid(samples: Array, shares: Array, first: Count, most: int) -> Int[Array, "device held"]:
    held: Array = jax.vmap(lambda own, share: own[places_held(first, most, share)])(samples, shares)
    return held
