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

from fairwave.policy.rows import cosines, lengths
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice

RESPONSE, LATE_STEPS = 0, 1
"""Places of the two directions along the first axis."""
SPREAD = 0.5
"""Std by which the share of work that a device does may differ between rounds: no round outweighs all others."""
TOLERANCE = 0.1
"""Share by which honest devices' work may fall short of the median of all, beside what is chance."""

PerTest = Float[Array, "test device"]


class RoundEvidence(eqx.Module):
    """What the updates of one round show along each direction."""

    found: PerTest
    """How far each update goes along its direction, in standard deviations of what chance does; NaN if it is late."""
    foreseen: PerTest
    """How far the access point's own training from the same copy goes along it, in the same unit."""


class Evidence(eqx.Module):
    """Pooled evidence of every device, along each direction; all of it fades with the same memory."""

    found: PerTest
    """The weighted sum of a device's evidence."""
    usual: PerTest
    """The same sum of what full work shows, over the rounds in which the device took part."""
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


def round_evidence(
    updates: UpdatePerDevice, directions: Float[Array, "test device param"], reached: PerTest, arrived: FlagPerDevice
) -> RoundEvidence:
    """Evidence of updates along their directions, where the access point's own training reached so far along them.

    The unit of what is foreseen is the noise of the median update: whoever sends a longer one must not be asked less.
    """
    noise = lengths(updates) / updates.shape[1] ** 0.5
    usual = jnp.nanmedian(jnp.where(arrived, noise, jnp.nan))
    known = usual > 0.0
    found = jnp.stack([evidence(updates, towards) for towards in directions])
    return RoundEvidence(found, jnp.where(known, reached / jnp.where(known, usual, 1.0), 0.0))


def round_weight(usual: PerDevice) -> PerDevice:
    """The weight of a round in which full work shows `usual`.

    Evidence over `usual` estimates the share of work that a device has done, with variance 1 / usual^2 by chance and
    `SPREAD`^2 by differences between rounds; the weight is the inverse of their sum, over `usual`. A round in which
    full work shows nothing has no weight.
    """
    shown = jnp.maximum(usual, 0.0)
    return shown / (1.0 + (SPREAD * shown) ** 2)


def pooled(past: Evidence, current: RoundEvidence, counted: FlagPerDevice, memory: float) -> Evidence:
    """Evidence after one more round; whoever does not count in it keeps its own.

    Devices go less far than the access point, whose samples are few and its own. By how much is the same for all of
    them, and the median of all tells.
    """
    asked = counted[None, :] & (current.foreseen > 0.0)
    reached = jnp.where(asked, current.found / jnp.where(asked, current.foreseen, 1.0), jnp.nan)
    reliability = jnp.nan_to_num(jnp.nanmedian(reached, axis=1, keepdims=True))
    usual = jnp.maximum(reliability * current.foreseen, 0.0)
    weight = round_weight(usual)

    def add(old: PerTest, new: PerTest, kept: float) -> PerTest:
        return jnp.where(counted, kept * old + new, old)

    return Evidence(
        found=add(past.found, weight * current.found, memory),
        usual=add(past.usual, weight * usual, memory),
        variance=add(past.variance, weight**2, memory**2),
    )


def work_share(pool: Evidence) -> tuple[PerTest, PerTest]:
    """The share of full work that each device proves, along each direction, and its standard error."""
    known = pool.usual > 0.0
    usual = jnp.where(known, pool.usual, 1.0)
    return jnp.where(known, pool.found / usual, 0.0), jnp.where(known, jnp.sqrt(pool.variance) / usual, jnp.inf)


def evidence_deviation(
    pool: Evidence, scored: FlagPerDevice, last_deviation: PerDevice, false_alarm: float
) -> PerDevice:
    """How far each device falls short of full work, in [0, 1]; carried over for devices that are not scored.

    A device deviates where it proves less than full work does with probability `false_alarm`, by chance and along one
    direction: 0 at that threshold, 1 where it proves nothing, the larger of both directions. A few steps have less
    noise than many, and so answer the noise in a copy too well; what they show of late steps is compared with that
    answer. Where nothing at all would be above the threshold, evidence is too weak, and nobody deviates.
    """
    share, error = work_share(pool)
    median = jnp.nanmedian(jnp.where(scored, share, jnp.nan), axis=1, keepdims=True)
    shown = median > 0.0
    share, error = (jnp.where(shown, each / jnp.where(shown, median, 1.0), jnp.inf) for each in (share, error))
    answered = jnp.maximum(share[RESPONSE], 1.0)
    late = share[LATE_STEPS] / answered
    late_error = jnp.sqrt(error[LATE_STEPS] ** 2 + (late * error[RESPONSE]) ** 2) / answered
    tests = ((share[RESPONSE], error[RESPONSE]), (late, late_error))
    short = jnp.max(jnp.stack([_shortfall(*test, false_alarm) for test in tests]), axis=0)
    return jnp.where(scored, short, last_deviation)


def _shortfall(share: PerDevice, error: PerDevice, false_alarm: float) -> PerDevice:
    """How far shares of full work fall short of what it shows at least, in [0, 1]."""
    threshold = 1.0 - TOLERANCE + ndtri(false_alarm) * error
    tells = jnp.isfinite(error) & (threshold > 0.0)
    return jnp.where(tells, jnp.clip(1.0 - share / jnp.where(tells, threshold, 1.0), 0.0, 1.0), 0.0)
