"""Whether a device sends again what it sent before, in any mixture and of any age.

Noise that privacy puts into an update is new in every round, and much longer than what was learned. Whoever sends a
part of an old update, to pass for work that it has not done, sends that part of its noise again: its update goes along
the sum of its own earlier ones, by more than those of honest devices do. The same holds for the way of its copy, in
which its own updates are a part. Where a device trains without noise nothing tells a repetition from steady progress,
which is why a device is compared with the median of all.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.training_evidence import evidence
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice

LIMIT = 4.5
"""Standard deviations of pooled repetition that chance does not reach: once in 300,000 honest rounds."""

MOST = LIMIT
"""The most that one round counts, so that a device that stops is not held to it for long."""


class Repetition(eqx.Module):
    """What every device has sent, and how much of it it has sent again."""

    sent: UpdatePerDevice
    """The sum of each device's updates."""
    excess: PerDevice
    """Pooled evidence along that sum, beyond the median device's; it fades like evidence of work."""
    variance: PerDevice
    """The variance of `excess` by chance."""


def no_repetition(num_devices: int, size: int) -> Repetition:
    """Before the first round."""
    nothing = jnp.zeros(num_devices)
    return Repetition(sent=jnp.zeros((num_devices, size), jnp.float32), excess=nothing, variance=nothing)


def after_updates(past: Repetition, updates: UpdatePerDevice, counted: FlagPerDevice, memory: float) -> Repetition:
    """What is known after one more round; whoever does not count in it keeps its own."""
    again = evidence(updates, past.sent)
    judged = counted & jnp.any(past.sent != 0.0, axis=1)
    usual = jnp.nan_to_num(jnp.nanmedian(jnp.where(judged, again, jnp.nan)))
    return Repetition(
        sent=past.sent + jnp.where(counted[:, None], updates, 0.0).astype(past.sent.dtype),
        excess=jnp.where(judged, memory * past.excess + jnp.minimum(again - usual, MOST), past.excess),
        variance=jnp.where(judged, memory**2 * past.variance + 1.0, past.variance),
    )


def repeats(known: Repetition) -> FlagPerDevice:
    """A mask of the devices that send again what they sent before."""
    return known.excess > LIMIT * jnp.sqrt(jnp.maximum(known.variance, 1.0))
