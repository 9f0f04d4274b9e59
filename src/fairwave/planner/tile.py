"""One tile of devices and draws: one call of one compiled program."""

from __future__ import annotations

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from fairwave.policy.convergence import accuracy_bound
from fairwave.policy.device_plan import Case, DevicePlan, plan_round
from fairwave.policy.fleet import Fleet, per_device_axes
from fairwave.policy.rule import Rule
from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.parameters import Radio
from fairwave.types import Count, Flag, Key, Scalar
from fairwave.wireless.channel_knowledge import safe_gain
from fairwave.wireless.fading import Channel, draw_channel

CACHED_LANES = 4_096
"""Lanes of one device's arithmetic that a core's second-level cache holds."""

Averages = dict[str, Array]

AVERAGED = (
    "optimal_iterations",
    "optimal_energy_j",
    "optimal_utility",
    "local_iterations",
    "transmit_power_w",
    "uplink_rate_bps",
    "compute_time_s",
    "upload_time_s",
    "compute_energy_j",
    "transmit_energy_j",
    "energy_j",
    "utility",
)
"""Parts of a device's plan that are averaged over draws."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a compiled program depends on, apart from the devices."""

    rule: Rule
    radio: Radio
    learning: Learning


class Totals(eqx.Module):
    """Sums over draws for one device."""

    plan: DevicePlan
    local_accuracy: Scalar | None
    """Only where the loss is known to be convex."""
    worst_violation: Scalar
    case_count: Int[Array, " case"]
    failed: Count
    draws: Count


@functools.partial(jax.jit, static_argnums=0)
def draw_tile(radio: Radio, root: Key, rounds: Int[Array, " draw"], members: Int[Array, " device"]) -> Channel:
    """Channels of some devices in some rounds: (device, draw)."""
    draw = functools.partial(draw_channel, radio.fading, radio.channel_error_std, root)
    return jax.vmap(jax.vmap(draw, in_axes=(0, None)), in_axes=(None, 0))(rounds, members)


@functools.partial(jax.jit, static_argnums=0)
def average_tile(setting: Setting, fleet: Fleet, channels: Channel) -> Averages:
    """Plans of some devices for a single draw, in one program: what a million devices run."""
    lanes = channels.fading_gain.shape[0]
    size = lanes if lanes % CACHED_LANES or jax.default_backend() != "cpu" else CACHED_LANES
    wide, shared = eqx.partition(fleet, lambda leaf: leaf.ndim > 0)

    def block(own: tuple[Fleet, Channel]) -> Averages:
        totals = sum_tile(setting, eqx.combine(own[0], shared), own[1], jnp.ones(1, bool))
        averages: Averages = averages_of(totals)
        return {name: value for name, value in averages.items() if name != "case_fraction"}

    blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), (wide, channels))
    averages: Averages = jax.tree.map(jnp.ravel, jax.lax.map(block, blocks))
    return averages


@functools.partial(jax.jit, static_argnums=0)
def sum_tile(setting: Setting, fleet: Fleet, channels: Channel, counts: Bool[Array, " draw"]) -> Totals:
    """Plans of some devices over their channels, summed over the draws that count.

    Devices and draws share one axis, which vectorises better than two when there is a single draw.
    """
    wide, deep = channels.fading_gain.shape
    lanes = jax.tree.map(lambda leaf: jnp.repeat(leaf, deep) if leaf.ndim else leaf, fleet)
    each = jax.vmap(functools.partial(_one_draw, setting), in_axes=(per_device_axes(lanes), 0, 0))(
        lanes, jax.tree.map(jnp.ravel, channels), jnp.tile(counts, wide)
    )
    each = jax.tree.map(lambda leaf: leaf.reshape(wide, deep, *leaf.shape[1:]), each)
    sums = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=1), each)
    return _with_worst(sums, jnp.max(each.worst_violation, axis=1))


def _one_draw(setting: Setting, device_fleet: Fleet, channel: Channel, counts: Flag) -> Totals:
    radio = setting.radio
    planned_gain = safe_gain(channel.estimated_gain, radio.channel_error_std, radio.outage_probability)
    plan = plan_round(setting.rule, device_fleet.device, planned_gain, device_fleet.preferences, device_fleet.effort)
    sent = plan.case != int(Case.OUTAGE)
    totals = Totals(
        plan=plan,
        local_accuracy=_local_accuracy(setting.learning, plan.local_iterations, sent),
        worst_violation=plan.violation,
        case_count=(jnp.arange(len(Case)) == plan.case).astype(jnp.int64),
        failed=(sent & (channel.fading_gain < planned_gain)).astype(jnp.int64),
        draws=jnp.ones((), jnp.int64),
    )
    counted: Totals = jax.tree.map(lambda leaf: jnp.where(counts, leaf, jnp.zeros_like(leaf)), totals)
    return counted


def _local_accuracy(learning: Learning, iterations: Count, sent: Flag) -> Scalar | None:
    if learning.smoothness is None or learning.strong_convexity is None:
        return None
    reached = accuracy_bound(
        learning.convergence,
        iterations.astype(float),
        learning_rate=learning.learning_rate,
        smoothness=learning.smoothness,
        strong_convexity=learning.strong_convexity,
    )
    return jnp.where(sent, reached, 0.0)


@jax.jit
def add(one: Totals, other: Totals) -> Totals:
    """Sums over two sets of draws."""
    return _with_worst(jax.tree.map(jnp.add, one, other), jnp.maximum(one.worst_violation, other.worst_violation))


def _with_worst(totals: Totals, worst: Array) -> Totals:
    """The sums with the one entry that is no sum."""
    replaced: Totals = eqx.tree_at(lambda leafs: leafs.worst_violation, totals, worst)
    return replaced


@jax.jit
def averages_of(totals: Totals) -> Averages:
    """Means over the draws in which the device uploaded; NaN for a device that never did."""
    outages = totals.case_count[:, int(Case.OUTAGE)]
    sent = totals.draws - outages
    share = jnp.where(sent > 0, 1.0 / jnp.maximum(sent, 1), jnp.nan)
    summed = {name: getattr(totals.plan, name) for name in AVERAGED}
    if totals.local_accuracy is not None:
        summed["local_accuracy"] = totals.local_accuracy
    return {
        "outage_fraction": outages / totals.draws,
        "failed_upload_fraction": totals.failed / totals.draws,
        "case": jnp.argmax(totals.case_count, axis=1).astype(jnp.int8),
        "case_fraction": (totals.case_count / totals.draws[:, None]).astype(jnp.float32),
        "worst_violation": totals.worst_violation,
        **{name: value * share for name, value in summed.items()},
    }
