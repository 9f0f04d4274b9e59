"""Peers that reward contribution: reputations, and how much of the round's progress each device is given."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.policy.performance_fairness import shares
from fairwave.policy.rows import lengths
from fairwave.types import FlagPerDevice, Key, Params, PerDevice, UpdatePerDevice

LEAST_REPUTATION = 1e-3
_SHORTEST = 1e-7


def of_length(updates: UpdatePerDevice, length: float) -> UpdatePerDevice:
    """Every update at the same length (CGSV)."""
    return updates * (length / (lengths(updates) + _SHORTEST))[:, None].astype(updates.dtype)


def at_most_of_length(updates: UpdatePerDevice, length: float) -> UpdatePerDevice:
    """Every update no longer than that (RFFL)."""
    factor = jnp.minimum(1.0, length / jnp.maximum(lengths(updates), _SHORTEST))
    return updates * factor[:, None].astype(updates.dtype)


def trusted_step(updates: UpdatePerDevice, reputation: PerDevice, used: FlagPerDevice) -> Params:
    """Sum of the updates weighted by last round's reputations; evenly while there are none."""
    known = jnp.where(used, reputation, 0.0)
    return jnp.where(jnp.sum(known) > 0.0, known, shares(used * 1.0)).astype(updates.dtype) @ updates


def gradient_shapley_reputation(
    reputation: PerDevice, current: PerDevice, used: FlagPerDevice, memory: float
) -> PerDevice:
    """CGSV's reputations: moving average of agreement, no less than a thousandth, as shares.

    Xu, Lyu, Ma, Miao, Foo, Low, "Gradient Driven Rewards to Guarantee Fairness in Collaborative Machine Learning",
    NeurIPS 2021.
    """
    moved = jnp.maximum(memory * reputation + (1.0 - memory) * current, LEAST_REPUTATION)
    return shares(jnp.where(used, moved, reputation))


def altruistic_shares(reputation: PerDevice, altruism: float) -> PerDevice:
    """CGSV's share of the step that each device is given; the best gets all."""
    return of_the_best(jnp.tanh(altruism * reputation))


def of_the_best(score: PerDevice) -> PerDevice:
    """Scores over the best one; all zero if none is positive."""
    return jnp.maximum(score, 0.0) / jnp.maximum(jnp.max(score), _SHORTEST)


def robust_reputation(
    reputation: PerDevice, current: PerDevice, used: FlagPerDevice, member: FlagPerDevice, memory: float
) -> PerDevice:
    """RFFL's reputations: moving average of agreement among members, as shares; who disagrees on average has none.

    Xu, Lyu, "A Reputation Mechanism Is All You Need: Collaborative Fairness and Adversarial Robustness in Federated
    Learning", FL-ICML 2021.
    """
    moved = jnp.where(used, memory * reputation + (1.0 - memory) * current, reputation)
    return shares(jnp.maximum(jnp.where(member, moved, 0.0), 0.0))


def earned_credits(
    credit: PerDevice, accuracy: PerDevice, used: FlagPerDevice, member: FlagPerDevice, punishment: float
) -> PerDevice:
    """CFFL's credits: validation accuracy as shares, mostly this round's, with a hyperbolic sine that parts them.

    Lyu, Xu, Wang, "Collaborative Fairness in Federated Learning", FL-IJCAI 2020; weights 0.2 and 0.8 as in their code.
    """
    counted = used & member
    fresh = shares(jnp.where(counted, accuracy, 0.0))
    moved = jnp.where(counted, 0.2 * credit + 0.8 * fresh, credit)
    return shares(jnp.where(member, jnp.sinh(punishment * moved), 0.0))


def still_members(
    score: PerDevice, member: FlagPerDevice, judged: FlagPerDevice, share_of_even: float
) -> FlagPerDevice:
    """Who stays: whose score is at least this part of what everybody would have if all were equal, or is not judged."""
    return member & (~judged | (score >= share_of_even / jnp.maximum(jnp.sum(member), 1)))


def largest_part(step: Params, share: PerDevice) -> UpdatePerDevice:
    """For each device the largest values of the step, as many as its share of all; zero elsewhere.

    One mask over all values, as the papers have it; the code of CGSV and RFFL masks each layer by itself.
    """
    order = jnp.argsort(-jnp.abs(step))
    rank = jnp.zeros(step.size, order.dtype).at[order].set(jnp.arange(step.size))
    return jnp.where(rank[None, :] < jnp.ceil(share * step.size)[:, None], step[None, :], 0.0)


def others_drawn(key: Key, used: FlagPerDevice, share: PerDevice) -> UpdatePerDevice:
    """IAFL's weights (receiver by sender): its own update and those of so many others, drawn evenly, as a mean.

    Wu, Amiri, Raskar, Low, "Incentive-Aware Federated Learning with Training-Time Model Rewards", ICLR 2024.
    """
    size = used.size
    luck = jax.random.uniform(key, (size, size))
    own = jnp.eye(size, dtype=bool)
    rank = jnp.argsort(jnp.argsort(jnp.where(used[None, :] & ~own, luck, jnp.inf), axis=1), axis=1)
    count = jnp.ceil(share * (jnp.sum(used) - used))
    member = ((rank < count[:, None]) & ~own & used[None, :]) | (own & used[:, None])
    return jax.vmap(shares)(member * 1.0)


def reward_rates(held: PerDevice, equality: float) -> PerDevice:
    """IAFL's share of others that each device is given: by the data it brings; equality 1 gives everybody all."""
    return (held / jnp.maximum(jnp.max(held), 1.0)) ** (1.0 - equality)
