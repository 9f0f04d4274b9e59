"""The steps of a round between the devices' own work, each one compiled program for all devices."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.engine.battery import covers
from fairwave.engine.invitation import Attendance, only
from fairwave.engine.model_copies import first_copies
from fairwave.engine.state import Books, State
from fairwave.keys import Stream, device_key
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.evaluate import accuracy, sample_losses
from fairwave.learning.loss import global_loss
from fairwave.learning.model import Model, Tree
from fairwave.policy.contribution import no_score
from fairwave.policy.device_plan import Case, DevicePlan, plan_round
from fairwave.policy.effort import Effort
from fairwave.policy.effort_fit import EffortMemory, Strategy, fit_effort, no_memory
from fairwave.policy.fleet import Fleet, per_device_axes
from fairwave.policy.rules import Rule
from fairwave.privacy.membership import loss_attack_auc
from fairwave.scenario.parameters import Radio
from fairwave.types import Count, Flag, FlagPerDevice, Key, PerDevice, Scalar
from fairwave.wireless.channel_knowledge import safe_gain
from fairwave.wireless.fading import draw_channel
from fairwave.wireless.mobility import Motion, moved


class Sent(eqx.Module):
    """What the devices do in a round, and which of their messages get through."""

    plan: DevicePlan
    participating: FlagPerDevice
    """Those of the participants whose charge covers the plan."""
    arrives: FlagPerDevice
    """The channel carries what the device sends, such as its gradient."""
    late: FlagPerDevice
    """Its update comes after the deadline."""
    delivered: FlagPerDevice
    """Its update arrives in time and is used."""


test_accuracy = jax.jit(accuracy, static_argnums=0)
loss_of_all = jax.jit(global_loss)
mean_of_gradients = jax.jit(mean_gradient)


@functools.partial(jax.jit, static_argnums=0)
def membership_auc(model: Model, params: Tree, members: tuple[Array, Array], others: tuple[Array, Array]) -> Scalar:
    """How well losses tell the samples that were trained on from others."""
    return loss_attack_auc(sample_losses(model, params, *members), sample_losses(model, params, *others))


Keeping = Literal["models", "copies", "copies alike"]
"""How devices' copies are kept: as models, or as what they are made of, with noise of their own or everybody's."""


@functools.partial(jax.jit, static_argnums=(0, 1, 5))
def first_state(
    model: Model, effort_window: int, root: Key, effort: Effort, devices: Array, kept: Keeping = "models"
) -> State:
    """Before the first round, of access point and devices."""
    each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, devices.shape), effort)
    return State(
        **vars(first_books(model, root, devices, kept)),
        memory=jax.vmap(lambda one: no_memory(one, effort_window))(each),
        past=None,
        personal=None,
        used_energy_j=None,
    )


@functools.partial(jax.jit, static_argnums=(0, 3))
def first_books(model: Model, root: Key, devices: Array, kept: Keeping = "models") -> Books:
    """Before the first round: everybody holds the same random model."""
    params = model.init(device_key(root, 0, Stream.INITIAL_MODEL, 0))
    if kept == "models":
        received = for_each(params, devices)
    else:
        received = first_copies(params, devices, alike=kept == "copies alike")
    return Books(
        global_params=params,
        received=received,
        deviation=jnp.zeros(devices.shape),
        score=no_score(devices.size),
        spent=jnp.zeros(devices.shape, jnp.int64),
        dossier=None,
        scheme_memory=(),
    )


@jax.jit
def for_each(params: Tree, devices: Array) -> Tree:
    """The same model for every device."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*devices.shape, *leaf.shape)), params)


@jax.jit
def part_of(tree: Tree, devices: Array) -> Tree:
    """Some devices' part of a tree with a leading device axis."""
    return jax.tree.map(lambda leaf: leaf[devices], tree)


@jax.jit
def among_all(values: dict[str, Array], present: Attendance) -> dict[str, PerDevice]:
    """Participants' values in the order of all devices; NaN for the others."""
    absent = jnp.full(present.participating.shape, jnp.nan)
    placed = {name: absent.at[present.chosen].set(value) for name, value in values.items()}
    return {name: jnp.where(present.participating, value, jnp.nan) for name, value in placed.items()}


@functools.partial(jax.jit, static_argnums=4)
def within_budget(
    present: Attendance, members: Fleet, left: Int[Array, " device"], needed: PerDevice, in_steps: bool
) -> tuple[Attendance, Fleet]:
    """Who can afford to take part; where budgets are of steps, nobody plans more of them than it has left."""
    return only(present, left >= needed), capped(members, left) if in_steps else members


def capped(member: Fleet, left: Array) -> Fleet:
    """A device, or all of them, with no more iterations than are left of its budget."""
    device = member.device
    most = jnp.minimum(device.max_iterations, jnp.maximum(left, device.min_iterations))
    return dataclasses.replace(member, device=dataclasses.replace(device, max_iterations=most))


@functools.partial(jax.jit, static_argnums=2)
def in_place(members: Fleet, motion: Motion, path_loss_exponent: float, number: Count) -> tuple[Fleet, PerDevice]:
    """The fleet where it is in a round, and each device's distance."""
    path_gain, distance_m = jax.vmap(
        lambda one, way: moved(one, way, path_loss_exponent, number), in_axes=(per_device_axes(members).device, 0)
    )(members.device, motion)
    return heard_with(members, path_gain), distance_m


def heard_with(member: Fleet, path_gain: Array) -> Fleet:
    """A device, or all of them, at a place with that path gain."""
    return dataclasses.replace(member, device=dataclasses.replace(member.device, path_gain=path_gain))


@functools.partial(jax.jit, static_argnums=(0, 1))
def plan_and_send(
    rule: Rule,
    radio: Radio,
    members: Fleet,
    memory: EffortMemory,
    root: Key,
    number: Count,
    devices: Array,
    present: Attendance,
    left_j: PerDevice | None,
) -> Sent:
    """Every participant's plan over its channel, and what becomes of its upload; `left_j` is in its battery, if any."""
    one = functools.partial(prepare_upload, rule, radio, root, number)
    axes = (per_device_axes(members), 0, 0, 0, 0)
    plan, able, arrives = jax.vmap(one, in_axes=axes)(members, memory, devices, present.participating, left_j)
    late = present.slow & (plan.case != int(Case.OUTAGE))
    return Sent(plan=plan, participating=able, arrives=arrives, late=late, delivered=arrives & ~late)


def prepare_upload(
    rule: Rule,
    radio: Radio,
    root: Key,
    number: Count,
    member: Fleet,
    memory: EffortMemory,
    index: Count,
    asked: Flag,
    left_j: Scalar | None,
) -> tuple[DevicePlan, Flag, Flag]:
    """One device's plan over its channel, whether it takes part, and whether the channel carries what it sends."""
    cycles = None if radio.doppler_hz is None else radio.doppler_hz * member.device.deadline_s * number
    channel = draw_channel(radio.fading, radio.channel_error_std, root, number, index, cycles)
    planned_gain = safe_gain(channel.estimated_gain, radio.channel_error_std, radio.outage_probability)
    plan = plan_round(rule, member.device, planned_gain, member.preferences, memory.effort)
    asked = asked if left_j is None else asked & covers(left_j, member.device, plan)
    sent = asked & (plan.case != int(Case.OUTAGE))
    plan = jax.tree.map(lambda leaf: jnp.where(asked, leaf, jnp.zeros_like(leaf)), plan)
    return plan, asked, sent & (channel.fading_gain >= planned_gain)


@functools.partial(jax.jit, static_argnums=(0, 1))
def fit_efforts(
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
