"""Shapley values against orders counted one by one, closed forms and axioms; the estimate against the exact values."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.errors import ArgumentError
from fairwave.metrics.shapley import MOST_EXACT, all_coalitions, estimated_shapley, exact_shapley

LENGTHS = np.array([3.0, 7.0, 1.0, 7.0, 4.0])
"""Runways that the aircraft of an airport game need."""
TOO_FAR = 4.5
"""Standard errors by which an estimate of a player is off less than once in 100,000 draws, if errors are normal."""


def by_orders(worth: Callable[[frozenset[int]], float], players: int) -> np.ndarray:
    """The definition: what each player adds, averaged over all orders."""
    added = np.zeros(players)
    orders = list(itertools.permutations(range(players)))
    for order in orders:
        for place, player in enumerate(order):
            added[player] += worth(frozenset(order[: place + 1])) - worth(frozenset(order[:place]))
    return added / len(orders)


def gloves(coalition: frozenset[int]) -> float:
    """Players 0 and 1 hold a left glove, the others a right one; pairs are worth something."""
    return float(min(len(coalition & {0, 1}), len(coalition - {0, 1})))


def airport(masks: np.ndarray) -> np.ndarray:
    """A coalition needs the runway of its largest aircraft."""
    return np.max(np.where(masks, LENGTHS[None, :], 0.0), axis=1)


def airport_values() -> np.ndarray:
    """Closed form: every stretch of runway is shared evenly by those who need it (Littlechild and Owen 1973)."""
    order = np.argsort(LENGTHS, kind="stable")
    stretches = np.diff(LENGTHS[order], prepend=0.0)
    values = np.empty(LENGTHS.size)
    values[order] = np.cumsum(stretches / (LENGTHS.size - np.arange(LENGTHS.size)))
    return values


def quadratic(weights: np.ndarray, pairs: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Weights of members and of pairs of members; a pair's worth is shared by its two."""
    return lambda masks: masks @ weights + 0.5 * np.einsum("ci,ij,cj->c", masks, pairs, masks)


def test_values_are_those_of_all_orders():
    worth = np.array([gloves(frozenset(np.flatnonzero(mask))) for mask in all_coalitions(5)])
    np.testing.assert_allclose(exact_shapley(worth), by_orders(gloves, 5), atol=1e-12)


def test_values_of_an_airport_are_its_closed_form():
    np.testing.assert_allclose(exact_shapley(airport(all_coalitions(5))), airport_values(), atol=1e-12)


def test_the_worth_of_a_pair_is_shared_by_its_two_for_as_many_players_as_there_may_be():
    draw = np.random.default_rng(3)
    weights, pairs = draw.normal(size=MOST_EXACT), draw.normal(size=(MOST_EXACT, MOST_EXACT))
    pairs = np.triu(pairs, 1) + np.triu(pairs, 1).T
    values = exact_shapley(quadratic(weights, pairs)(all_coalitions(MOST_EXACT).astype(float)))
    np.testing.assert_allclose(values, weights + 0.5 * pairs.sum(axis=1), atol=1e-10)


games = st.lists(st.floats(-100.0, 100.0), min_size=16, max_size=16).map(np.array)


@settings(max_examples=50, deadline=None)
@given(games, games, st.floats(-3.0, 3.0))
def test_axioms(one: np.ndarray, other: np.ndarray, factor: float):
    values = exact_shapley(one)
    assert values.sum() == pytest.approx(one[-1] - one[0], abs=1e-9)  # efficiency
    np.testing.assert_allclose(
        exact_shapley(one + factor * other), values + factor * exact_shapley(other), atol=1e-9
    )  # linearity
    masks = np.arange(16)
    swapped = (masks & 0b1100) | ((masks & 1) << 1) | ((masks >> 1) & 1)
    np.testing.assert_allclose(exact_shapley(one[swapped]), values[[1, 0, 2, 3]], atol=1e-9)  # names do not matter
    alike = exact_shapley(one + one[swapped])
    assert alike[0] == pytest.approx(alike[1], abs=1e-9)  # symmetry
    without_3 = one[masks & 0b0111]
    assert exact_shapley(without_3)[3] == pytest.approx(0.0, abs=1e-9)  # null player


def test_games_that_are_too_large_or_none_are_refused():
    with pytest.raises(ArgumentError, match="13 players have"):
        all_coalitions(MOST_EXACT + 1)
    with pytest.raises(ArgumentError, match="shape \\(6,\\) is no game"):
        exact_shapley(np.zeros(6))
    with pytest.raises(ArgumentError, match="blocks: 1"):
        estimated_shapley(airport, 5, blocks=1, seed=0)


@pytest.mark.statistical
def test_the_estimate_is_within_its_stated_error():
    found = estimated_shapley(airport, 5, blocks=200, seed=1)
    assert found.standard_error.max() < 0.1
    # The smallest aircraft pays only where it opens an order, so that its value has no error but rounding.
    assert np.all(np.abs(found.values - airport_values()) < TOO_FAR * found.standard_error + 1e-9)
    # Efficiency holds in every order, and so for the estimate.
    assert found.values.sum() == pytest.approx(LENGTHS.max())
    # A mutant that takes the order of the players for all orders is rejected.
    in_order = np.diff(np.maximum.accumulate(LENGTHS), prepend=0.0)
    assert np.any(np.abs(in_order - airport_values()) > TOO_FAR * found.standard_error)


@pytest.mark.statistical
def test_truncation_saves_evaluations_and_costs_no_more_than_it_says():
    players = 14
    weights = np.linspace(0.2, 1.0, players)

    def utility(masks: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 - np.exp(-(masks @ weights)))

    whole = estimated_shapley(utility, players, blocks=30, seed=2)
    short = estimated_shapley(utility, players, blocks=30, seed=2, within=0.05)
    assert short.evaluations < 0.8 * whole.evaluations
    lost = whole.values - short.values  # the same orders, so that nothing but truncation differs
    assert np.all(lost >= -1e-12) and 0.0 < lost.max() <= 0.05


def test_a_game_that_moves_nothing_is_not_played():
    found = estimated_shapley(airport, 5, blocks=2, seed=0, between=7.1)
    assert found.evaluations == 2 and not found.values.any()
    assert estimated_shapley(airport, 5, blocks=2, seed=0, between=6.9).evaluations > 2


def test_draws_are_addressed():
    def values(**address: int) -> np.ndarray:
        return estimated_shapley(airport, 5, blocks=3, **address).values

    np.testing.assert_array_equal(values(seed=4, number=1), values(seed=4, number=1))
    assert not np.array_equal(values(seed=4, number=1), values(seed=4, number=2))
    assert not np.array_equal(values(seed=4, number=1), values(seed=5, number=1))
