"""Shapley values: what each player of a game contributes, averaged over all orders in which players may come.

A game is given by the worth of every coalition. Up to `MOST_EXACT` players, values are computed from all of them; for
more, they are estimated from orders that are drawn.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairwave.errors import ArgumentError
from fairwave.keys import Stream, host_generator

MOST_EXACT = 12
"""Players up to which all coalitions are looked at: 4,096 of them."""

Utility: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""From masks, coalition by player, to the worth of each coalition."""


def all_coalitions(num_players: int) -> np.ndarray:
    """Masks of all coalitions, coalition by player: coalition number m holds the players whose bit is set in m."""
    if not 1 <= num_players <= MOST_EXACT:
        raise ArgumentError(
            f"num_players: {num_players} players have 2^{num_players} coalitions, and 1 to {MOST_EXACT} players are "
            "computed exactly; estimate the values instead, with estimated_shapley"
        )
    return np.asarray((np.arange(2**num_players)[:, None] >> np.arange(num_players)[None, :]) & 1 == 1)


def exact_shapley(worth: np.ndarray) -> np.ndarray:
    """Every player's Shapley value, from the worth of all coalitions in the order of `all_coalitions`."""
    worth = np.asarray(worth, np.float64)
    num_players = worth.size.bit_length() - 1
    if worth.ndim != 1 or worth.size != 2**num_players:
        raise ArgumentError(f"worth: an array of shape {worth.shape} is no game; give 2^K values for K players")
    values: np.ndarray = _coefficients(num_players) @ worth
    return values


@functools.cache
def _coefficients(num_players: int) -> np.ndarray:
    """The weight of every coalition's worth in every player's value, player by coalition.

    A coalition S counts |S|! (K - |S| - 1)! / K! as what a player outside finds, with a minus, and as what a player
    inside leaves behind, with the weight of the coalition without it.
    """
    member = all_coalitions(num_players).T
    size = member.sum(axis=0)
    found = np.array([1.0 / (num_players * math.comb(num_players - 1, each)) for each in range(num_players)])
    inside, outside = found[np.maximum(size - 1, 0)], found[np.minimum(size, num_players - 1)]
    return np.asarray(np.where(member, inside[None, :], -outside[None, :]))


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Shapley values from orders that were drawn."""

    values: np.ndarray
    """The estimate for each player."""
    standard_error: np.ndarray
    """The standard error of each by the draw of orders; what truncation leaves out is not in it."""
    evaluations: int
    """Coalitions whose worth was asked for."""


def estimated_shapley(
    utility: Utility,
    num_players: int,
    *,
    blocks: int,
    seed: int,
    number: int = 0,
    between: float = 0.0,
    within: float = 0.0,
) -> Estimate:
    """Shapley values from drawn orders: every block holds one order that each player opens.

    Two truncations save evaluations, after GTG-Shapley (Liu et al., ACM TIST 2022). A game whose grand coalition is
    worth less than `between` more than nobody is not played: all values are 0. An order is followed until its coalition
    is within `within` of the grand coalition: the players left in it get 0 there. Each then misses what it would have
    added there, at most `within` in a game in which nobody does harm. `number` tells the games of one seed apart.
    """
    if blocks < 2:
        raise ArgumentError(f"blocks: {blocks} gives no standard error; draw 2 or more")
    nobody, everybody = utility(np.stack([np.zeros(num_players, bool), np.ones(num_players, bool)]))
    if abs(everybody - nobody) < between:
        return Estimate(np.zeros(num_players), np.zeros(num_players), 2)
    orders = np.concatenate([_block(num_players, seed, number, block) for block in range(blocks)])
    added, evaluations = _followed(utility, orders, (float(nobody), float(everybody)), within)
    means = added.reshape(blocks, num_players, num_players).mean(axis=1)
    return Estimate(means.mean(axis=0), means.std(axis=0, ddof=1) / blocks**0.5, evaluations + 2)


def _block(num_players: int, seed: int, number: int, block: int) -> np.ndarray:
    """One order for each player to open, the others drawn; the mean over the block is unbiased."""
    draw = host_generator(seed, Stream.SHAPLEY, number, block)
    others = [np.delete(np.arange(num_players), first) for first in range(num_players)]
    return np.stack([np.concatenate(([first], draw.permutation(rest))) for first, rest in enumerate(others)])


def _followed(utility: Utility, orders: np.ndarray, ends: tuple[float, float], within: float) -> tuple[np.ndarray, int]:
    """What each player adds in each order, order by player, and how many coalitions were asked for.

    `ends` are the worth of nobody and of everybody. All orders are followed abreast, so that a place is one call.
    """
    count, num_players = orders.shape
    member, added = np.zeros((count, num_players), bool), np.zeros((count, num_players))
    worth, evaluations = np.full(count, ends[0]), 0
    for place in range(num_players):
        going = np.flatnonzero(np.abs(ends[1] - worth) >= within)
        if going.size == 0:
            break
        player = orders[going, place]
        member[going, player] = True
        if place == num_players - 1:
            reached = np.full(going.size, ends[1])
        else:
            coalitions, which = np.unique(member[going], axis=0, return_inverse=True)
            reached = np.asarray(utility(coalitions), np.float64)[which.ravel()]
            evaluations += len(coalitions)
        added[going, player] = reached - worth[going]
        worth[going] = reached
    return added, evaluations
