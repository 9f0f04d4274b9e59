"""The known breaks of the paper's rule, on MNIST, and that the default defences close them on fresh seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr

import fairwave
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.parameters import Scenario
from fairwave.studies.incentives import jobs

CHEAT, FIRST, ROUNDS, EARLY = 9, 3, 9, slice(4, None)
HONEST = np.arange(10) != CHEAT
FRESH = range(1000, 1010)


def scenario(*overrides: str, attack: str | None = None, strength: float = 1.0) -> Scenario:
    cell = fairwave.load_scenario("paper-clean", ["data.samples_per_device=900", *overrides])
    entry = Adversary(behaviour=attack or "echo_model", devices=(CHEAT,), first_round=FIRST, strength=strength)
    return cell.model_copy(update={"cheating": Cheating(adversaries=(entry,) if attack else ())})


def train(cell: Scenario, seeds: Sequence[int] = (0,), rounds: int = 12) -> xr.Dataset:
    return fairwave.simulate(cell, ["proposed"], seeds=seeds, rounds=rounds).results.isel(scheme=0)


@pytest.mark.slow
def test_an_echoed_model_wins_by_the_literal_rule():
    results = train(scenario(attack="echo_model")).isel(seed=0)
    assert results["cheating"].sum() == 10 and not results["cheating"].isel(round=slice(0, 2)).any()
    assert (results["compute_energy_j"].isel(round=-1, device=CHEAT) == 0).all()
    deviation = results["deviation"].isel(round=EARLY).mean("round").values
    assert deviation[CHEAT] < 0.05 and deviation[HONEST].mean() > 0.5


@pytest.mark.slow
def test_a_long_echo_wins_where_updates_are_compared_with_their_mean():
    """Ten times as long, the echo is the mean; plain local training, as the gradient exchange steadies the others."""
    over = ("privacy.similarity=update", "learning.gradient_exchange=false")
    calm, results = (train(scenario(*over, attack=attack, strength=10.0)) for attack in (None, "echo_update"))
    before, after = (each["deviation"].isel(seed=0, round=EARLY).mean("round").values for each in (calm, results))
    assert after[CHEAT] < 0.05 and after[HONEST].mean() > max(0.25, 4.0 * before[HONEST].mean())


@pytest.fixture(scope="module")
def defended() -> Scenario:
    """Scored and defended as the preset 'fair' is."""
    (found,) = (job.order.scenario for job in jobs(scenario(), [0], ROUNDS, []) if job.name == "nobody-defended")
    return found


@pytest.fixture(scope="module")
def calm(defended) -> xr.Dataset:
    return train(defended, FRESH, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "strength"), [("echo_model", 1.0), ("echo_update", 10.0)])
def test_the_default_defences_close_both_on_fresh_seeds(defended, calm, attack, strength):
    """Thresholds were set on other seeds. What is asked for is the worst of ten seeds, but for the loss: their mean."""
    cheated = defended.model_copy(update={"cheating": scenario(attack=attack, strength=strength).cheating})
    run = train(cheated, FRESH, ROUNDS)
    early = run.isel(round=EARLY)
    assert float(early["deviation"].isel(device=CHEAT).mean("round").min()) >= 0.9
    assert float(early["deviation"].isel(device=HONEST).mean(("round", "device")).max()) <= 0.2
    alarms = [(each["findings"].isel(device=HONEST) > 0).values.mean() for each in (calm, run)]
    assert max(alarms) <= 0.01
    caught = (run["findings"].isel(device=CHEAT, round=slice(FIRST - 1, None)) > 0).values
    assert caught.mean() >= 0.95
    loss = [each["received_loss"].isel(device=HONEST, round=slice(-3, None)).mean() for each in (calm, run)]
    assert float(loss[1] / loss[0]) <= 1.03
