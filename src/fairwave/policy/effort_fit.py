"""Learning the effort model from what the device observed.

One observation cannot tell two parameters, so the paper's fit needs a rule for the rest:

* `paper`: the smallest change of (beta1, beta2 / 1 J) that explains the newest pair exactly;
* `prior`: beta2 stays at its first guess, beta1 explains the newest pair;
* `window`: least squares on the last pairs, with a ridge towards the first guess.

A deviation of 0 gives beta1 = 0: the device expects nothing from working more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.policy.effort import Effort
from fairwave.types import Count, Flag, Scalar

Strategy = Literal["paper", "prior", "window"]

_GRID = 65
_GOLDEN_STEPS = 48
_GOLDEN = 0.6180339887498949
_WIDEST_DECAY = 1e3
"""The window fit looks for beta2 within this factor of its first guess."""


class EffortMemory(eqx.Module):
    """What one device remembers: its estimate, its first guess, and its last pairs (newest first)."""

    effort: Effort
    first: Effort
    compute_energy_j: Float[Array, " window"]
    deviation: Float[Array, " window"]
    num_pairs: Count


def no_memory(first: Effort, window: int) -> EffortMemory:
    """Before the first round."""
    empty = jnp.zeros(window, first.scale.dtype)
    return EffortMemory(
        effort=first, first=first, compute_energy_j=empty, deviation=empty, num_pairs=jnp.zeros((), jnp.int32)
    )


def fit_effort(
    strategy: Strategy,
    memory: EffortMemory,
    compute_energy_j: Scalar,
    deviation: Scalar,
    *,
    observed: Flag,
    ridge: float,
) -> EffortMemory:
    """The memory after a round in which the device spent `compute_energy_j` and received `deviation`.

    Nothing changes if it took no part (`observed` false).

    Paper: Eq. (29).
    """
    newer = EffortMemory(
        effort=memory.effort,
        first=memory.first,
        compute_energy_j=jnp.roll(memory.compute_energy_j, 1).at[0].set(compute_energy_j),
        deviation=jnp.roll(memory.deviation, 1).at[0].set(deviation),
        num_pairs=jnp.minimum(memory.num_pairs + 1, memory.deviation.size),
    )
    match strategy:
        case "paper":
            effort = _least_change(memory.effort, compute_energy_j, deviation)
        case "prior":
            effort = _through(compute_energy_j, deviation, memory.first.decay_j)
        case "window":
            effort = _least_squares(newer, ridge)
    updated = eqx.tree_at(lambda m: m.effort, newer, effort)
    kept: EffortMemory = jax.tree.map(lambda new, old: jnp.where(observed, new, old), updated, memory)
    return kept


def _through(compute_energy_j: Scalar, deviation: Scalar, decay_j: Scalar) -> Effort:
    """The model with that decay that passes through one pair."""
    return Effort(scale=deviation * jnp.exp(compute_energy_j / decay_j), decay_j=decay_j)


def _least_change(last: Effort, compute_energy_j: Scalar, deviation: Scalar) -> Effort:
    """The nearest model, in (beta1, beta2 / 1 J), that passes through one pair.

    If the last model expected too much, the decay shrinks, at most to where the last scale explains the pair. If it
    expected too little, the decay grows, at most by the distance to one model that explains the pair.
    """
    wanted = _through(compute_energy_j, deviation, last.decay_j).scale
    informative = (deviation > 0.0) & (compute_energy_j > 0.0)
    ratio = last.scale / jnp.where(informative, deviation, 1.0)
    same_scale_j = compute_energy_j / jnp.log(jnp.where(informative & (ratio > 1.0), ratio, jnp.e))
    known_j = jnp.maximum(compute_energy_j, last.decay_j)
    known = _through(compute_energy_j, deviation, known_j)
    reach_j = last.decay_j + jnp.hypot(known.scale - last.scale, known_j - last.decay_j)
    low_j = jnp.where(wanted < last.scale, jnp.minimum(same_scale_j, last.decay_j), last.decay_j)
    high_j = jnp.where(wanted < last.scale, last.decay_j, reach_j)

    def change(log_decay: Scalar) -> Scalar:
        through = _through(compute_energy_j, deviation, jnp.exp(log_decay))
        return (through.scale - last.scale) ** 2 + (through.decay_j - last.decay_j) ** 2

    nearest = jnp.exp(_minimise(change, jnp.log(low_j), jnp.log(high_j)))
    return _through(compute_energy_j, deviation, jnp.where(informative, nearest, last.decay_j))


def _least_squares(memory: EffortMemory, ridge: float) -> Effort:
    """Ridge regression on the window: for each decay the best scale is linear, so one search over the decay does."""
    first = memory.first
    used = jnp.arange(memory.deviation.size) < memory.num_pairs

    def best_scale(decay_j: Scalar) -> Scalar:
        basis = jnp.where(used, jnp.exp(-memory.compute_energy_j / decay_j), 0.0)
        scale = (basis @ memory.deviation + ridge * first.scale) / (basis @ basis + ridge)
        return jnp.maximum(scale, 0.0)

    def loss(log_decay: Scalar) -> Scalar:
        decay_j = jnp.exp(log_decay)
        scale = best_scale(decay_j)
        missed = jnp.where(used, memory.deviation - scale * jnp.exp(-memory.compute_energy_j / decay_j), 0.0)
        pull = (scale - first.scale) ** 2 + (log_decay - jnp.log(first.decay_j)) ** 2
        return missed @ missed + ridge * pull

    centre, reach = jnp.log(first.decay_j), jnp.log(_WIDEST_DECAY)
    decay_j = jnp.exp(_minimise(loss, centre - reach, centre + reach))
    return Effort(scale=best_scale(decay_j), decay_j=decay_j)


def _minimise(function: Callable[[Scalar], Scalar], low: Scalar, high: Scalar) -> Scalar:
    """Least value on [low, high]: a grid finds the valley, golden sections its bottom."""
    grid = jnp.linspace(low, high, _GRID)
    best = jnp.argmin(jax.vmap(function)(grid))
    left, right = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, _GRID - 1)]

    def shrink(_: int, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        start, end = ends
        inner, outer = end - _GOLDEN * (end - start), start + _GOLDEN * (end - start)
        keep_left = function(inner) <= function(outer)
        return jnp.where(keep_left, start, inner), jnp.where(keep_left, outer, end)

    start, end = jax.lax.fori_loop(0, _GOLDEN_STEPS, shrink, (left, right))
    middle = 0.5 * (start + end)
    return jnp.where(function(middle) <= function(grid[best]), middle, grid[best])
