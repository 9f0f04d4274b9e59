"""A privacy filter keeps its budget, whatever kinds of releases are chosen, in whatever order and number."""

from __future__ import annotations

import dp_accounting
import dp_accounting.rdp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.privacy import privacy_filter
from fairwave.privacy.accounting import Kind, Releases, epsilon_of
from fairwave.privacy.budget import most_releases
from fairwave.privacy.privacy_filter import SHARE_OF_LOST, SHARE_OF_MIXED, Budget, renyi_divergence

KINDS = [(1.3, 128 / 6_000), (0.8, 0.01), (5.0, 1.0), (2.0, 0.3), (30.0, 1.0)]


def _divergence(kind: tuple[float, float], order: int) -> float:
    """By dp-accounting, read back from the epsilon that it derives from one order alone."""
    multiplier, sampling = kind
    event = dp_accounting.GaussianDpEvent(multiplier)
    sampled = dp_accounting.PoissonSampledDpEvent(sampling, event) if sampling < 1.0 else event
    delta = 1e-6
    epsilon = dp_accounting.rdp.RdpAccountant(orders=[order]).compose(sampled).get_epsilon(delta)
    return epsilon - np.log1p(-1.0 / order) + np.log(delta * order) / (order - 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [2, 6, 17, 64])
def test_divergences_are_those_of_dp_accounting(kind: tuple[float, float], order: int) -> None:
    expected = _divergence(kind, order)
    if expected > 1e-3 or order <= 6:  # below, the way back loses the digits
        assert renyi_divergence(kind, order) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_divergences_keep_their_digits_where_they_are_tiny() -> None:
    """For little sampling and much noise the divergence is order * q^2 / (2 z^2), nearly."""
    assert renyi_divergence((1e3, 1e-5), 4) == pytest.approx(4 * 1e-10 / 2e6, rel=1e-4)


def test_one_kind_is_counted_tightly() -> None:
    budget, kind = Budget(8.0, 1e-5), KINDS[0]
    allowed = budget.allowance({}, 0.0, kind, kind, 1e-13)
    assert allowed == most_releases(kind, 8.0, 1e-5 * (1 - SHARE_OF_MIXED - SHARE_OF_LOST), 0.0)
    assert budget.allowance({kind: allowed}, 0.0, kind, kind, 1e-13) == 0
    assert allowed > 1.5 * budget._of_any_kinds({}, kind, kind)


Choices = st.lists(st.tuples(st.sampled_from(KINDS), st.floats(0.01, 1.0)), min_size=1, max_size=6)


def _spent_by(budget: Budget, choices: list[tuple[tuple[float, float], float]]) -> dict[tuple[float, float], int]:
    """What somebody gets who asks, again and again, for a share of all that is still allowed."""
    releases: dict[tuple[float, float], int] = {}
    first = choices[0][0]
    for kind, share in choices:
        allowed = budget.allowance(releases, 0.0, first, kind, 0.0)
        releases[kind] = releases.get(kind, 0) + int(np.ceil(share * allowed))
    return {kind: count for kind, count in releases.items() if count}


@settings(max_examples=25, deadline=None)
@given(Choices, st.sampled_from([0.5, 1.5, 8.0]))
def test_no_choice_of_kinds_overspends(choices: list[tuple[tuple[float, float], float]], epsilon: float) -> None:
    assert epsilon_of(_spent_by(Budget(epsilon, 1e-5), choices), 1e-5) <= epsilon * (1 + 1e-6)


def test_a_filter_for_each_kind_would_overspend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property can fail: with a budget of its own for every kind, which is what a budget per federation is."""
    whole = Budget._of_any_kinds

    def alone(self: Budget, releases: Releases, first: Kind, kind: Kind) -> int:
        return whole(self, {kind: releases.get(kind, 0)}, first, kind)

    monkeypatch.setattr(privacy_filter.Budget, "_of_any_kinds", alone)
    releases = _spent_by(Budget(1.5, 1e-5), [(kind, 1.0) for kind in KINDS])
    assert epsilon_of(releases, 1e-5) > 1.6


@pytest.mark.parametrize("kind", KINDS[:2])
def test_what_is_lost_to_rounding_is_part_of_the_budget(kind: Kind) -> None:
    """Under either rule, and also where the next release itself loses nothing."""
    budget, first, loseable = Budget(8.0, 1e-5), KINDS[0], 1e-5 * SHARE_OF_LOST
    assert budget.allowance({first: 10}, 0.0, first, kind, loseable / 7.5) == 7
    assert budget.allowance({first: 10}, loseable, first, kind, 1e-12) == 0
    assert budget.allowance({first: 10}, 1.01 * loseable, first, kind, 0.0) == 0


def test_delta_that_was_lost_before_is_not_lent_again() -> None:
    """Releases that lose much of delta, then releases of the same kind that lose none."""
    budget, kind, lost_each = Budget(8.0, 1e-5), KINDS[0], 5.6e-8
    many = budget.allowance({}, 0.0, kind, kind, lost_each)
    more = budget.allowance({kind: many}, many * lost_each, kind, kind, 0.0)
    assert epsilon_of({kind: many + more}, 1e-5 - many * lost_each) <= 8.0
