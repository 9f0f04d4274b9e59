"""One round of one scheme: the eight steps of the paper's system, each a function from another folder.

1 channel, 2 plan, 3 gradient exchange, 4 local training, 5 noise and upload, 6 aggregation, 7 release, 8 effort fit.
Policies compute in double precision, models in single.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.data.partition import Holdings, share_out
from fairwave.data.sources import DataSet
from fairwave.engine.device import LocalTraining, Work, gradient_map, loss_map, training_map
from fairwave.engine.state import RoundRecord, State
from fairwave.keys import Stream, device_key, run_key
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.evaluate import accuracy
from fairwave.learning.local import correction_term
from fairwave.learning.loss import global_loss
from fairwave.learning.model import Model, Tree
from fairwave.policy.access_point import Release, release, released_copy, uniform_levels
from fairwave.policy.contribution import no_score
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
        )
        with jax.enable_x64(True):
            self.root = run_key(scenario.run.seed)
            self.fleet: Fleet = fleet(scenario, DeviceValues(scenario))
            self.samples = (jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
            self.test = (jnp.asarray(data.test_inputs), jnp.asarray(data.test_labels))
            self.own = (jnp.asarray(self.holdings.samples), jnp.asarray(self.holdings.counts))
            self.devices = jnp.arange(scenario.cell.num_devices)
            privacy, learning = scenario.privacy, scenario.learning
            noisy = privacy.local_noise and scheme.noisy_updates
            local_std = float(uniform_levels(privacy, jnp.zeros(1))[0]) if noisy else 0.0
        self.training = LocalTraining(model, learning.batch_size, learning.learning_rate, local_std)

    def start(self) -> State:
        """Before the first round: everybody holds the same random model."""
        num_devices = self.scenario.cell.num_devices
        with jax.enable_x64(True):
            params = self.model.init(device_key(self.root, 0, Stream.INITIAL_MODEL, 0))
            effort = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_devices,)), self.fleet.effort)
            return State(
                global_params=params,
                received=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_devices, *leaf.shape)), params),
                deviation=jnp.zeros(num_devices),
                score=no_score(num_devices),
                memory=jax.vmap(lambda one: no_memory(one, self.scenario.utility.effort_window))(effort),
            )

    def round(self, state: State, round_index: int) -> tuple[State, RoundRecord]:
        """The next state, and what happened."""
        with jax.enable_x64(True):
            return self._round(state, jnp.asarray(round_index))

    def _round(self, state: State, number: Count) -> tuple[State, RoundRecord]:
        scenario, scheme = self.scenario, self.scheme
        plan, delivered = _plan(scheme.plan, scenario.radio, self.fleet, state.memory, self.root, number, self.devices)
        received_loss, correction = self._exchange(state, delivered)
        trained = training_map(self.training)(
            (self.root, number, *self.samples),
            Work(state.received, correction, *self.own, plan.local_iterations, self.devices),
            self.num_threads,
        )
        params, copies, given = _finish(
            scheme, scenario.privacy, state, trained.update, delivered, self.root, number, self.devices
        )
        utility = scenario.utility
        memory = _fit(utility.effort_fit, utility.effort_ridge, state.memory, plan, given.deviation, delivered)
        true_losses = loss_map(self.model)((params, *self.samples), self.own, self.num_threads)
        record = RoundRecord(
            plan=plan,
            delivered=delivered,
            received_loss=received_loss,
            loss=trained.loss,
            update_norm=trained.update_norm,
            deviation=given.deviation,
            noise_std=given.noise_std,
            global_loss=global_loss(true_losses, self.own[1]),
            test_accuracy=_accuracy(self.model, params, *self.test),
        )
        return State(params, copies, given.deviation, given.score, memory), record

    def _exchange(self, state: State, delivered: FlagPerDevice) -> tuple[PerDevice, Tree]:
        """Loss of each received copy, and the correction that the mean gradient makes to each local problem."""
        loss, gradients = gradient_map(self.model)(self.samples, (state.received, *self.own), self.num_threads)
        if not self.scenario.learning.gradient_exchange:
            return loss, jax.tree.map(jnp.zeros_like, gradients)
        mean, weight = mean_gradient(gradients, delivered), self.scenario.learning.gradient_weight
        return loss, jax.vmap(lambda own: correction_term(own, mean, weight))(gradients)


_accuracy = jax.jit(accuracy, static_argnums=0)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _plan(
    rule: Rule, radio: Radio, members: Fleet, memory: EffortMemory, root: Key, number: Count, devices: Array
) -> tuple[DevicePlan, FlagPerDevice]:
    """Every device's plan over its channel, and whether its upload will arrive."""

    def one(member: Fleet, own_memory: EffortMemory, index: Count) -> tuple[DevicePlan, Array]:
        channel = draw_channel(radio.fading, radio.channel_error_std, root, number, index)
        planned_gain = safe_gain(channel.estimated_gain, radio.channel_error_std, radio.outage_probability)
        plan = plan_round(rule, member.device, planned_gain, member.preferences, own_memory.effort)
        return plan, (plan.case != int(Case.OUTAGE)) & (channel.fading_gain >= planned_gain)

    axes = jax.tree.map(lambda leaf: 0 if leaf.ndim else None, members)
    return jax.vmap(one, in_axes=(axes, 0, 0))(members, memory, devices)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _finish(
    scheme: Scheme,
    privacy: Privacy,
    state: State,
    updates: Tree,
    delivered: FlagPerDevice,
    root: Key,
    number: Count,
    devices: Array,
) -> tuple[Tree, Tree, Release]:
    """What the access point does with the updates: the new model, every device's copy, deviations and noise levels."""
    params = scheme.aggregate(state.global_params, updates, delivered)
    flat, unravel = ravel_pytree(params)
    given = release(
        scheme.levels,
        privacy,
        flat,
        jax.vmap(lambda tree: ravel_pytree(tree)[0])(updates),
        participating=delivered,
        last_deviation=state.deviation,
        last_score=state.score,
    )
    recipients = jnp.zeros_like(devices) if scheme.one_copy_for_all else devices
    noise = jax.vmap(
        lambda index: jax.random.normal(device_key(root, number, Stream.RELEASE_NOISE, index), flat.shape, flat.dtype)
    )(recipients)
    copies = jax.vmap(unravel)(released_copy(flat, given.noise_std.astype(flat.dtype), noise))
    kept = jax.tree.map(
        lambda new, old: jnp.where(delivered.reshape(-1, *[1] * (new.ndim - 1)), new, old), copies, state.received
    )
    return params, kept, given


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
