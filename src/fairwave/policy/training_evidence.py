"""How much of a device's work its updates prove, although most of what they hold is privacy noise.

The access point trains from the copy that it sent a device, on samples of its own, and asks how far the device's update
goes along directions that only training from that copy gives:

* `RESPONSE`, how training takes back the noise in the copy. Nobody but the access point knows that noise, it is new in
  every round, and this direction changes its sign with it: whoever has not computed gradients at its copy goes along
  it by chance alone.
* `LATE_STEPS`, where the later part of training goes. A few steps go along the first direction as far as many do; along
  this one they do not.

One round says little where noise is large, so that evidence is pooled over rounds. An update that is independent of a
direction has evidence of mean 0 and variance 1 along it, which makes the error of pooled evidence known: thresholds
follow from it. The derivation is in docs/incentives.md.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

from fairwave.policy.rows import cosines
from fairwave.types import FlagPerDevice, PerDevice, Scalar, UpdatePerDevice

RESPONSE, LATE_STEPS = 0, 1
"""Places of the two directions along the first axis."""
SPREAD = 0.5
"""Std by which the share of work that a device does may differ between rounds: no round outweighs all others."""
TOLERANCE = 0.1
"""Share by which honest devices' work may fall short of the median of all, beside what is chance."""

PerTest = Float[Array, "test device"]


class Evidence(eqx.Module):
    """Pooled evidence of every device, along each direction; all of it fades with the same memory."""

    found: PerTest
    """The weighted sum of a device's evidence."""
    usual: PerTest
    """The same sum of the median device's evidence, over the rounds in which the device took part."""
    variance: PerTest
    """The variance of `found`."""


def no_evidence(num_devices: int) -> Evidence:
    """Before the first round."""
    nothing = jnp.zeros((2, num_devices))
    return Evidence(found=nothing, usual=nothing, variance=nothing)


def evidence(updates: UpdatePerDevice, directions: UpdatePerDevice) -> PerDevice:
    """How far each update goes along its direction, in standard deviations of what chance does.

    A vector of n values in a random direction has a cosine of variance 1 / n with any other. Scaling an update changes
    nothing; noise that a device adds makes its evidence smaller.
    """
    scores: PerDevice = updates.shape[1] ** 0.5 * cosines(updates, directions)
    return scores


def round_weight(usual: Scalar) -> Scalar:
    """The weight of a round in which the median device's evidence is `usual`.

    Evidence over `usual` estimates the share of work that a device has done, with variance 1 / usual^2 by chance and
    `SPREAD`^2 by differences between rounds; the weight is the inverse of their sum, over `usual`. A round in which the
    median device shows nothing has no weight.
    """
    shown = jnp.maximum(usual, 0.0)
    return shown / (1.0 + (SPREAD * shown) ** 2)


def pooled(past: Evidence, current: PerTest, counted: FlagPerDevice, memory: float) -> Evidence:
    """Evidence after one more round; whoever does not count in it keeps its own."""
    usual = jnp.nan_to_num(jnp.nanmedian(jnp.where(counted, current, jnp.nan), axis=1, keepdims=True))
    weight = round_weight(usual)

    def add(old: PerTest, new: PerTest, kept: float) -> PerTest:
        return jnp.where(counted, kept * old + new, old)

    return Evidence(
        found=add(past.found, weight * current, memory),
        usual=add(past.usual, jnp.broadcast_to(weight * usual, current.shape), memory),
        variance=add(past.variance, jnp.broadcast_to(weight**2, current.shape), memory**2),
    )


def work_share(pool: Evidence) -> tuple[PerTest, PerTest]:
    """The share of the median device's work that each device proves, along each direction, and its standard error."""
    known = pool.usual > 0.0
    usual = jnp.where(known, pool.usual, 1.0)
    return jnp.where(known, pool.found / usual, 0.0), jnp.where(known, jnp.sqrt(pool.variance) / usual, jnp.inf)


def evidence_deviation(
    pool: Evidence, scored: FlagPerDevice, last_deviation: PerDevice, false_alarm: float
) -> PerDevice:
    """How far each device falls short of full work, in [0, 1]; carried over for devices that are not scored.

    A device deviates where it proves less than full work does with probability `false_alarm`, by chance and along one
    direction: 0 at that threshold, 1 where it proves nothing, the larger of both directions. Where nothing at all
    would be above the threshold, evidence is too weak, and nobody deviates.
    """
    share, error = work_share(pool)
    median = jnp.nan_to_num(jnp.nanmedian(jnp.where(scored, share, jnp.nan), axis=1, keepdims=True))
    threshold = (1.0 - TOLERANCE) * median + ndtri(false_alarm) * error
    tells = threshold > 0.0
    shortfall = jnp.where(tells, 1.0 - share / jnp.where(tells, threshold, 1.0), 0.0)
    return jnp.where(scored, jnp.max(jnp.clip(shortfall, 0.0, 1.0), axis=0), last_deviation)
