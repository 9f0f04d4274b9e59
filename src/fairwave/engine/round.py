"""One round of one scheme: the eight steps of the paper's system, each a function from another folder.

1 channel, 2 plan, 3 gradient exchange, 4 local training, 5 noise and upload, 6 aggregation, 7 release, 8 effort fit.
Policies compute in double precision, models in single.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from fairwave.data.partition import Holdings, share_out
from fairwave.data.sources import DataSet
from fairwave.engine.attendance import Attendance, Window, attendance
from fairwave.engine.device import LocalTraining, Work, gradient_map, loss_map, received_loss_map, training_map
from fairwave.engine.state import RoundRecord, State
from fairwave.keys import Stream, device_key, run_key
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.evaluate import accuracy
from fairwave.learning.local import correction_term
from fairwave.learning.loss import global_loss
from fairwave.learning.model import Model, Tree
from fairwave.policy.access_point import release, released_copy, uniform_levels
from fairwave.policy.contribution import no_score
from fairwave.policy.effort import Effort
from fairwave.policy.effort_fit import EffortMemory, Strategy, fit_effort, no_memory
from fairwave.policy.fleet import Fleet, fleet
from fairwave.policy.plan import Case, DevicePlan, plan_round
from fairwave.policy.rules import Rule
from fairwave.scenario.parameters import Privacy, Radio, Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.base import Scheme
from fairwave.types import Count, Flag, FlagPerDevice, Key, PerDevice, Scalar
from fairwave.wireless.channel_knowledge import safe_gain
from fairwave.wireless.fading import draw_channel
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
            state: State = _started(self.model, window, self.root, self.fleet.effort, self.devices)
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
        plan, delivered = _plan(
            scheme.plan, scenario.radio, self.fleet, state.memory, self.root, number, self.devices, present
        )
        everyone = (self.window.at(number), self.window.counts)
        received, (held, counts), iterations, arrived = _of(
            (state.received, everyone, plan.local_iterations, delivered), present.chosen
        )
        received_loss, correction = self._exchange(received, (held, counts), arrived)
        trained = training_map(self.training)(
            (self.root, number, *self.samples),
            Work(received, correction, held, counts, iterations, present.chosen),
            self.num_threads,
        )
        after, noise_std = _finish(
            scheme, scenario.privacy, state, trained.update, present, delivered, self.root, number, self.devices
        )
        utility = scenario.utility
        memory = _fit(utility.effort_fit, utility.effort_ridge, state.memory, plan, after.deviation, delivered)
        true_losses = loss_map(self.model)((after.global_params, *self.samples), everyone, self.num_threads)
        told = _among_all(
            {"received_loss": received_loss, "loss": trained.loss, "update_norm": trained.update_norm}, present
        )
        record = RoundRecord(
            plan=plan,
            participating=present.participating,
            late=present.late,
            delivered=delivered,
            **told,
            deviation=after.deviation,
            noise_std=noise_std,
            global_loss=_global_loss(true_losses, self.window.counts),
            test_accuracy=_accuracy(self.model, after.global_params, *self.test),
        )
        return State(after.global_params, after.received, after.deviation, after.score, memory), record

    def _exchange(
        self, received: Tree, own: tuple[Array, Array], delivered: Bool[Array, " participant"]
    ) -> tuple[Float[Array, " participant"], Tree]:
        """Loss of each received copy, and the correction that the mean gradient makes to each local problem."""
        if not self.scenario.learning.gradient_exchange:
            loss = received_loss_map(self.model)(self.samples, (received, *own), self.num_threads)
            return loss, jax.tree.map(jnp.zeros_like, received)
        loss, gradients = gradient_map(self.model)(self.samples, (received, *own), self.num_threads)
        return loss, _corrections(self.scenario.learning.gradient_weight, gradients, delivered)


_accuracy = jax.jit(accuracy, static_argnums=0)
_global_loss = jax.jit(global_loss)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _started(model: Model, effort_window: int, root: Key, effort: Effort, devices: Array) -> State:
    params = model.init(device_key(root, 0, Stream.INITIAL_MODEL, 0))
    each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, devices.shape), effort)
    return State(
        global_params=params,
        received=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*devices.shape, *leaf.shape)), params),
        deviation=jnp.zeros(devices.shape),
        score=no_score(devices.size),
        memory=jax.vmap(lambda one: no_memory(one, effort_window))(each),
    )


@jax.jit
def _of(tree: Tree, devices: Array) -> Tree:
    """Some devices' part of a tree with a leading device axis."""
    return jax.tree.map(lambda leaf: leaf[devices], tree)


@jax.jit
def _among_all(values: dict[str, Array], present: Attendance) -> dict[str, PerDevice]:
    """Participants' values in the order of all devices; NaN for the others."""
    absent = jnp.full(present.participating.shape, jnp.nan)
    return {name: absent.at[present.chosen].set(value) for name, value in values.items()}


@functools.partial(jax.jit, static_argnums=0)
def _corrections(weight: float, gradients: Tree, delivered: Bool[Array, " participant"]) -> Tree:
    mean = mean_gradient(gradients, delivered)
    return jax.vmap(lambda own: correction_term(own, mean, weight))(gradients)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _plan(
    rule: Rule,
    radio: Radio,
    members: Fleet,
    memory: EffortMemory,
    root: Key,
    number: Count,
    devices: Array,
    present: Attendance,
) -> tuple[DevicePlan, FlagPerDevice]:
    """Every participant's plan over its channel, and whether its upload gets through in time."""

    def one(member: Fleet, own_memory: EffortMemory, index: Count, asked: Flag) -> tuple[DevicePlan, Array]:
        channel = draw_channel(radio.fading, radio.channel_error_std, root, number, index)
        planned_gain = safe_gain(channel.estimated_gain, radio.channel_error_std, radio.outage_probability)
        plan = plan_round(rule, member.device, planned_gain, member.preferences, own_memory.effort)
        sent = asked & (plan.case != int(Case.OUTAGE))
        plan = jax.tree.map(lambda leaf: jnp.where(asked, leaf, jnp.zeros_like(leaf)), plan)
        return plan, sent & (channel.fading_gain >= planned_gain)

    axes = jax.tree.map(lambda leaf: 0 if leaf.ndim else None, members)
    plan, arrives = jax.vmap(one, in_axes=(axes, 0, 0, 0))(members, memory, devices, present.participating)
    return plan, arrives & ~present.late


@functools.partial(jax.jit, static_argnums=(0, 1))
def _finish(
    scheme: Scheme,
    privacy: Privacy,
    state: State,
    updates: Tree,
    present: Attendance,
    delivered: FlagPerDevice,
    root: Key,
    number: Count,
    devices: Array,
) -> tuple[State, PerDevice]:
    """What the access point does with the participants' updates: the next state but for the devices' own memory.

    A participant whose update was not used gets nothing and keeps its copy and deviation; a device that was not
    asked gets a copy at the noise level of its last deviation.
    """
    chosen = present.chosen
    params = scheme.aggregate(state.global_params, updates, delivered[chosen])
    flat, unravel = ravel_pytree(params)
    given = release(
        scheme.levels,
        privacy,
        flat,
        jax.vmap(lambda tree: ravel_pytree(tree)[0])(updates),
        participating=delivered[chosen],
        last_deviation=state.deviation[chosen],
        last_score=_of(state.score, chosen),
    )
    deviation = state.deviation.at[chosen].set(given.deviation)
    score = jax.tree.map(lambda old, new: old.at[chosen].set(new), state.score, given.score)
    noise_std = scheme.levels(privacy, deviation)
    recipients = jnp.zeros_like(devices) if scheme.same_for_all and privacy.broadcast else devices
    noise = jax.vmap(
        lambda index: jax.random.normal(device_key(root, number, Stream.RELEASE_NOISE, index), flat.shape, flat.dtype)
    )(recipients)
    copies = jax.vmap(unravel)(released_copy(flat, noise_std.astype(flat.dtype), noise))
    served = delivered | ~present.participating
    kept = jax.tree.map(
        lambda new, old: jnp.where(served.reshape(-1, *[1] * (new.ndim - 1)), new, old), copies, state.received
    )
    return State(params, kept, deviation, score, state.memory), noise_std


@functools.partial(jax.jit, static_argnums=(0, 1))
def _fit(
    strategy: Strategy,
    ridge: float,
    memory: EffortMemory,
    plan: DevicePlan,
    deviation: PerDevice,
    delivered: FlagPerDevice,
) -> EffortMemory:
    """Every device's effort estimate after it was told its deviation."""

    def one(own: EffortMemory, spent_j: Scalar, told: Scalar, seen: Flag) -> EffortMemory:
        return fit_effort(strategy, own, spent_j, told, observed=seen, ridge=ridge)

    return jax.vmap(one)(memory, plan.compute_energy_j, deviation, delivered)
