"""Questions about another cell: each answer is that of a plan in which the parameter has that value."""

from __future__ import annotations

import numpy as np
import pytest

import fairwave
from fairwave.planner.what_if import FACTORS, what_if

POLICIES = ("proposed", "max_power")
OWN = {"cell.deadline_s": 0.75, "radio.bandwidth_hz": 250e3, "radio.payload_bits": 875e3}
BATTERY = "compute.battery_capacity_j=7200"


@pytest.fixture(scope="module")
def answers():
    return what_if(fairwave.load_scenario("paper", [BATTERY]), POLICIES, draws=20)


@pytest.mark.parametrize("parameter", OWN)
def test_an_answer_is_a_plan_with_that_value(answers, parameter):
    assert answers["value"].sel(parameter=parameter).values == pytest.approx(
        [OWN[parameter] * each for each in FACTORS]
    )
    for factor in (0.5, 1.0, 2.0):
        scenario = fairwave.load_scenario("paper", [BATTERY, f"{parameter}={OWN[parameter] * factor}"])
        planned = fairwave.plan(scenario, POLICIES, draws=20)
        own = answers.sel(parameter=parameter, factor=factor)
        assert own["energy_j"].values == pytest.approx(planned["energy_j"].mean("device").values, rel=1e-9)
        assert own["most_energy_j"].values == pytest.approx(planned["energy_j"].max("device").values, rel=1e-9)
        assert own["outage_fraction"].values == pytest.approx(planned["outage_fraction"].mean("device").values)
        assert own["battery_life_rounds"].values == pytest.approx(planned["battery_life_rounds"].min("device").values)


def test_values_with_which_nobody_uploads_have_no_energy():
    found = what_if(fairwave.load_scenario("paper", ["cell.deadline_s=0.2"]), ["max_power"], draws=1, fading=False)
    short = found.sel(parameter="cell.deadline_s", factor=0.5)
    assert np.isnan(short["energy_j"]).all() and (short["outage_fraction"] == 1.0).all()
    assert "battery_life_rounds" not in found


def test_a_large_fleet_is_asked_in_part(monkeypatch):
    monkeypatch.setattr("fairwave.planner.what_if.MOST_DEVICES", 3)
    scenario = fairwave.load_scenario("paper", ["cell.num_devices=9"])
    found = what_if(scenario, ["max_power"], draws=1, fading=False)
    whole = fairwave.plan(scenario, ["max_power"], fading=False)["energy_j"].isel(policy=0, device=[0, 4, 8])
    assert found.attrs["devices"] == 3
    assert found["energy_j"].sel(parameter="cell.deadline_s", factor=1.0).item() == pytest.approx(float(whole.mean()))
