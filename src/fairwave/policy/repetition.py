"""Whether a device sends again what it sent before, in any mixture and of any age.

Noise that privacy puts into an update is new in every round, and much longer than what was learned. Whoever sends a
part of an old update, to pass for work that it has not done, sends that part of its noise again: its update goes along
the sum of its own earlier ones, by more than those of honest devices do. The same holds for the way of its copy, in
which its own updates are a part.

Steady progress goes along its own past too, most of all that of a device with data of its own, such as a class that
nobody else holds. The evidence of its late steps tells how much a device has learned, and what learning explains is not
held against it.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.rows import lengths
from fairwave.policy.training_evidence import evidence
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice

LIMIT = 4.5
"""Standard deviations of pooled repetition that chance does not reach: once in 300,000 honest rounds."""
MOST = LIMIT
"""The most that one round counts, so that a device that stops is not held to it for long."""
EXPLAINED = 4.0
"""The access point's direction has about half of what a device learns, and the product of two has a quarter."""


class Repetition(eqx.Module):
    """What every device has sent, and how much of it it has sent again."""

    sent: UpdatePerDevice
    """The sum of each device's updates, each at length 1: no long one hides the others."""
    learned: PerDevice
    """The sum of how far these went where late steps go."""
    excess: PerDevice
    """Pooled evidence along `sent`, beyond the median device's; it fades like evidence of work."""
    variance: PerDevice
    """The variance of `excess` by chance."""


def no_repetition(num_devices: int, size: int) -> Repetition:
    """Before the first round."""
    nothing = jnp.zeros(num_devices)
    sent = jnp.zeros((num_devices, size), jnp.float32)
    return Repetition(sent=sent, learned=nothing, excess=nothing, variance=nothing)


def after_updates(
    past: Repetition, updates: UpdatePerDevice, late: PerDevice, counted: FlagPerDevice, memory: float
) -> Repetition:
    """What is known after one more round; whoever does not count in it keeps its own.

    `late` is the evidence of each update's late steps.
    """
    length, before = lengths(updates), lengths(past.sent)
    counted = counted & (length > 0.0) & jnp.isfinite(length)
    units = jnp.where(counted[:, None], updates / jnp.where(counted, length, 1.0)[:, None], 0.0)
    learned = jnp.nan_to_num(late) / updates.shape[1] ** 0.5
    judged = counted & (before > 0.0)
    by_learning = learned * past.learned / jnp.where(judged, before, 1.0)
    explained = EXPLAINED * updates.shape[1] ** 0.5 * jnp.maximum(by_learning, 0.0)
    again = evidence(units, past.sent) - explained
    usual = jnp.nan_to_num(jnp.nanmedian(jnp.where(judged, again, jnp.nan)))
    return Repetition(
        sent=past.sent + units.astype(past.sent.dtype),
        learned=past.learned + jnp.where(counted, learned, 0.0),
        excess=jnp.where(judged, memory * past.excess + jnp.minimum(again - usual, MOST), past.excess),
        variance=jnp.where(judged, memory**2 * past.variance + 1.0, past.variance),
    )


def repeats(known: Repetition) -> FlagPerDevice:
    """A mask of the devices that send again what they sent before."""
    return known.excess > LIMIT * jnp.sqrt(jnp.maximum(known.variance, 1.0))
