"""Peers that look after the devices with the largest loss: how they weigh the updates of a round."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.types import FlagPerDevice, Params, PerDevice, UpdatePerDevice

LEAST_LOSS = 1e-10


def q_fair_step(
    updates: UpdatePerDevice, losses: PerDevice, used: FlagPerDevice, power: float, smoothness: float
) -> Params:
    """Step of q-FedAvg: updates weighted by a power of the loss, over an estimate of the step that is safe.

    The authors' w - sum(F^q L d) / sum(q F^(q-1) |L d|^2 + L F^q) with d = w - w_k, multiplied out by L.

    Li, Sanjabi, Beirami, Smith, "Fair Resource Allocation in Federated Learning", ICLR 2020, Algorithm 2.
    """
    loss = losses + LEAST_LOSS
    weight = jnp.where(used, loss**power, 0.0)
    bend = jnp.where(used, power * loss ** (power - 1.0) * smoothness * jnp.sum(updates**2, axis=1), 0.0)
    total = jnp.sum(weight + bend)
    return jnp.where(total > 0.0, weight / jnp.where(total > 0.0, total, 1.0), 0.0) @ updates


def tilted_weights(losses: PerDevice, used: FlagPerDevice, tilt: float) -> PerDevice:
    """Weights of TERM: exponential in the loss, summing to one.

    Li, Beirami, Sanjabi, Smith, "Tilted Empirical Risk Minimization", ICLR 2021. Their code tracks the normaliser over
    rounds because it samples devices; the sum over the round's own devices is what that estimates.
    """
    largest = jnp.max(jnp.where(used, losses, -jnp.inf))
    grown = jnp.where(used, jnp.exp(tilt * (losses - jnp.where(jnp.isfinite(largest), largest, 0.0))), 0.0)
    return shares(grown)


def agnostic_weights(weights: PerDevice, losses: PerDevice, used: FlagPerDevice, rate: float) -> PerDevice:
    """Next weights of AFL: a step up the losses, then back to weights that are shares.

    Mohri, Sivek, Suresh, "Agnostic Federated Learning", ICML 2019, Algorithm 1. Absent devices' losses are not known
    and do not push.
    """
    return on_simplex(weights + rate * jnp.where(used, losses, 0.0))


def on_simplex(point: PerDevice) -> PerDevice:
    """The nearest point with values of at least 0 that sum to 1, by sorting (Wang, Carreira-Perpinan 2013)."""
    falling = jnp.sort(point)[::-1]
    rank = jnp.arange(1, point.size + 1)
    surplus = (jnp.cumsum(falling) - 1.0) / rank
    last = jnp.sum(falling > surplus) - 1
    return jnp.maximum(point - surplus[last], 0.0)


def shares(values: PerDevice) -> PerDevice:
    """Values over their sum; all zero if there is none."""
    total = jnp.sum(values)
    return jnp.where(total > 0.0, values / jnp.where(total > 0.0, total, 1.0), 0.0)
