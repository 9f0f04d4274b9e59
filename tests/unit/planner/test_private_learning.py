"""Proposals for a privacy budget, held against the budget that a run would have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fairwave.double_precision import double_precision
from fairwave.errors import ScenarioError
from fairwave.planner.private_learning import lasting, propose
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.loading import load_scenario

QUICK = ("run.num_rounds=3",)


@pytest.fixture(scope="module")
def proposals():
    return propose(load_scenario("fair", QUICK), 4.0, 300)


def test_every_proposal_lasts_for_its_steps(proposals):
    """The number of steps that a run with these settings allows its devices, worked out by the privacy mode itself."""
    assert [each.batch_size for each in proposals] == [16, 32, 64, 128, 256]
    for each in proposals:
        scenario = load_scenario("fair", [*QUICK, *each.overrides(), "privacy.max_epsilon=4"])
        with double_precision():
            counts = np.array([300])
            allowed = mode_of(scenario.privacy).enforcement(scenario, counts, scenario.learning.num_parameters()).budget
        assert allowed is not None and allowed[0] >= each.steps
        assert allowed[0] <= 1.3 * each.steps + 2  # and no noise is wasted


def test_no_proposal_goes_farther_or_leaves_more_noise_than_the_scenario(proposals):
    """By hand: the way is rate times steps, the noise left is rate * multiplier / batch * sqrt(steps)."""
    own, learning = load_scenario("fair", QUICK), load_scenario("fair").learning
    steps = next(each.steps for each in proposals if each.batch_size == learning.batch_size)
    farthest = learning.learning_rate * steps
    noisiest = learning.learning_rate * own.privacy.noise_multiplier / learning.batch_size * np.sqrt(steps)
    for each in proposals:
        way = each.learning_rate * each.steps
        noise = each.learning_rate * each.noise_multiplier / each.batch_size * np.sqrt(each.steps)
        assert way <= 1.05 * farthest and noise <= 1.05 * noisiest
        assert way >= 0.95 * farthest or noise >= 0.95 * noisiest


def test_larger_batches_leave_less_noise_in_gradients(proposals):
    noise = [each.gradient_noise for each in proposals]
    assert noise == sorted(noise, reverse=True)


def test_a_mode_without_private_steps_is_refused():
    with pytest.raises(ScenarioError, match="no private steps to plan; take a scenario in mode"):
        propose(load_scenario("paper"), 8.0, 600)


def test_a_deadline_that_no_batch_meets_is_named():
    with pytest.raises(ScenarioError, match="no batch from 16 to 300 records fits the deadline"):
        propose(load_scenario("fair", [*QUICK, "cell.deadline_s=0.01"]), 8.0, 300)


def test_a_budget_lasts_for_the_rounds_that_the_gaussian_mechanism_allows():
    """Rounds of one multiplier z are one Gaussian mechanism of z / sqrt(rounds): Balle and Wang, 2018."""

    def epsilon(multiplier: float) -> float:
        def excess(eps: float) -> float:
            half, shift = 0.5 / multiplier, eps * multiplier
            return norm.cdf(half - shift) - np.exp(eps) * norm.cdf(-half - shift) - 1e-5

        return brentq(excess, 1e-3, 200.0)

    device = ("privacy.mode=device", "defences.use=[]", "defences.aggregator=mean")
    device += ("run.num_rounds=80", "privacy.noise_multiplier=8")
    found = lasting(load_scenario("fair", device), 4.0, 300)
    exact = max(n for n in range(1, 200) if epsilon(8.0 / np.sqrt(n)) <= 4.0)
    assert exact - 1 <= found.rounds <= exact < 80  # rounding takes a little of delta
    assert epsilon(found.noise_multiplier / np.sqrt(80)) == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize(("share", "enough"), [(1.0, True), (0.97, False)])
def test_the_least_noise_lasts_for_all_rounds_and_less_does_not(share: float, enough: bool):
    least = lasting(load_scenario("fair", QUICK), 4.0, 300).noise_multiplier
    tried = load_scenario("fair", [*QUICK, f"privacy.noise_multiplier={share * least}"])
    assert (lasting(tried, 4.0, 300).rounds >= 3) == enough
