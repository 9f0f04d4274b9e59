"""Learning the effort model from what the device observed.

One observation cannot tell two parameters, so the paper's fit needs a rule for the rest:

* `paper`: the smallest change of (beta1, beta2 / 1 J) that explains the newest pair exactly;
* `prior`: beta2 stays at its first guess, beta1 explains the newest pair;
* `window`: least squares on the last pairs, with a ridge towards the first guess.

A deviation of 0 gives beta1 = 0: the device expects nothing from working more. Every result is finite: beta1 is fitted
as its logarithm, because deviation * exp(E / beta2) exceeds every number once E is 710 times beta2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.policy.effort import Effort, bounded_exp, effort_model, energy_in_decays, finite_log, smallest
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
    empty = jnp.zeros(window, first.log_scale.dtype)
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
    return Effort(log_scale=finite_log(deviation) + energy_in_decays(compute_energy_j, decay_j), decay_j=decay_j)


def _least_change(last: Effort, compute_energy_j: Scalar, deviation: Scalar) -> Effort:
    """The nearest model, in (beta1, beta2 / 1 J), that passes through one pair.

    If the last model expected too much, the decay shrinks, at most to where the last scale explains the pair. If it
    expected too little, the decay grows, at most by the distance to one model that explains the pair.
    """
    informative = (deviation >= smallest(deviation)) & (compute_energy_j > 0.0)
    too_much = _through(compute_energy_j, deviation, last.decay_j).log_scale < last.log_scale
    log_ratio = last.log_scale - finite_log(deviation)
    shrinks = informative & too_much & (log_ratio > 0.0)
    same_scale_j = compute_energy_j / jnp.where(shrinks, log_ratio, 1.0)
    known = _through(compute_energy_j, deviation, jnp.maximum(compute_energy_j, last.decay_j))
    reach_j = last.decay_j + _distance(known, last)
    low_j = jnp.where(too_much, jnp.minimum(same_scale_j, last.decay_j), last.decay_j)
    high_j = jnp.where(too_much, last.decay_j, reach_j)

    def change(log_decay: Scalar) -> Scalar:
        return _distance(_through(compute_energy_j, deviation, jnp.exp(log_decay)), last)

    nearest = jnp.exp(_minimise(change, jnp.log(jnp.maximum(low_j, smallest(low_j))), jnp.log(high_j)))
    return _through(compute_energy_j, deviation, jnp.where(informative, nearest, last.decay_j))


def _distance(one: Effort, other: Effort) -> Scalar:
    """Distance of two models in (beta1, beta2 / 1 J). `hypot`, because squares of these numbers may overflow."""
    apart = bounded_exp(one.log_scale) - bounded_exp(other.log_scale)
    return jnp.hypot(apart, one.decay_j - other.decay_j)


def _least_squares(memory: EffortMemory, ridge: float) -> Effort:
    """Ridge regression on the window: for each decay the best scale is linear, so one search over the decay does."""
    first = memory.first
    used = jnp.arange(memory.deviation.size) < memory.num_pairs

    def basis_at(decay_j: Scalar) -> Array:
        return jnp.where(used, jnp.exp(-energy_in_decays(memory.compute_energy_j, decay_j)), 0.0)

    def best_scale(basis: Array) -> Scalar:
        scale = (basis @ memory.deviation + ridge * first.scale) / (basis @ basis + ridge)
        return jnp.maximum(scale, 0.0)

    def loss(log_decay: Scalar) -> Scalar:
        basis = basis_at(jnp.exp(log_decay))
        scale = best_scale(basis)
        missed = jnp.where(used, memory.deviation - scale * basis, 0.0)
        pull = (scale - first.scale) ** 2 + (log_decay - centre) ** 2
        return missed @ missed + ridge * pull

    centre, reach = finite_log(first.decay_j), jnp.log(_WIDEST_DECAY)
    decay_j = jnp.exp(_minimise(loss, centre - reach, centre + reach))
    return effort_model(best_scale(basis_at(decay_j)), decay_j)


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
