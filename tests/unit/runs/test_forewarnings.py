"""What is said before training, check by check: every sentence has its case, and no preset gives cause for one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import fairwave
from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.extensions import SCHEMES
from fairwave.learning.models import model_of
from fairwave.policy.fleet import fleet
from fairwave.policy.passes import iterations_of_passes, kept_to_their_data
from fairwave.runs.forewarnings import (
    Outlook,
    budget,
    forewarnings,
    iterations,
    outlook_of_plan,
    outlook_of_run,
    payload,
    samples,
)
from fairwave.scenario.loading import preset_names
from fairwave.scenario.per_device import DeviceValues
from tests.builders import clusters, clusters_scenario
from tests.end_to_end.command_line import fairwave as command

HELD = {"har": 213, "cifar10": 1000, "small": 500}
"""Samples of the device that has fewest; in the other presets ten devices share MNIST's 60,000."""
TABLE = ("learning.model=softmax", "learning.layer_sizes=[3, 3]", "radio.payload_bits=unset")
"""Three measurements and three classes: 128 rows have 3,072 bits, of which the deadline has time for 32,552."""


def seen_of(*overrides: str, preset: str = "paper-clean", **changes: object) -> Outlook:
    scenario = fairwave.load_scenario(preset, overrides)
    seen = dataclasses.replace(outlook_of_plan(scenario), rounds=scenario.run.num_rounds)
    return dataclasses.replace(seen, **changes)


@pytest.mark.parametrize("name", preset_names())
def test_presets_give_no_cause_and_plan_as_before(name):
    scenario = fairwave.load_scenario(name)
    counts = np.full(scenario.cell.num_devices, HELD.get(name, 6000))
    assert forewarnings(outlook_of_plan(scenario)) == []
    assert iterations(dataclasses.replace(outlook_of_plan(scenario), counts=counts)) is None
    members = fleet(scenario, DeviceValues(scenario))
    assert kept_to_their_data(members, scenario, counts) is members


def test_payload_of_another_model():
    said = payload(seen_of("learning.model=softmax", "learning.layer_sizes=[784, 10]"))
    assert said is not None and "plans charge 875 kbit for an update" in said
    assert "with 7,850 parameters, has 62.8 kbit; set it to unset" in said
    assert (
        payload(seen_of("learning.model=softmax", "learning.layer_sizes=[784, 10]", "radio.payload_bits=unset")) is None
    )
    twice = ("radio.charge_gradient_upload=true",)
    assert payload(seen_of(*twice)) is None  # two uploads of the right size
    own = payload(seen_of("radio.payload_bits=unset", num_parameters=1000))  # a model that replaces the scenario's
    assert own is not None and "with 1,000 parameters, has 8 kbit; set it to 8000" in own


def test_iterations_beyond_the_data():
    counts = np.full(10, 200)
    said = iterations(seen_of(*TABLE, counts=counts))
    # 0.75 s / (3,072 bit * 7.5 ns) = 32,552.08; times 128 rows over 200 samples are 20,833 passes.
    assert said is not None and "room for 32,552 local iterations, 20,833 passes over the 200 samples" in said
    assert "200 are allowed (10 passes, or 200 where that is more): set compute.max_iterations to choose" in said
    set_so = iterations(seen_of(*TABLE, "compute.max_iterations=5000", counts=counts))
    assert set_so is not None and "room for 5,000 local iterations, 3,200 passes" in set_so
    assert set_so.endswith("lower it, or leave it out")
    assert iterations(seen_of(*TABLE, "compute.max_iterations=200", counts=counts)) is None
    thousands = iterations(seen_of(*TABLE, "compute.max_iterations=2000", counts=np.full(10, 60_000)))
    assert thousands is not None and "set compute.max_iterations to a few hundred" in thousands


def test_a_plan_says_that_a_run_will_do_less():
    said = iterations(seen_of(*TABLE))
    assert (
        said is not None
        and "so that its plans will differ: set compute.max_iterations, or data.samples_per_device" in said
    )
    assert iterations(seen_of(*TABLE, "compute.max_iterations=5000")) is None
    with_data = fairwave.plan(
        fairwave.load_scenario("paper-clean", [*TABLE, "data.samples_per_device=200"]), fading=False
    )
    assert float(with_data["local_iterations"].max()) == 200.0


def test_more_samples_than_there_are():
    seen = seen_of("data.samples_per_device=9000", counts=np.full(10, 6000), num_samples=60_000)
    said = samples(seen)
    assert said is not None and "9,000 for each of 10 devices are more than the 60,000 training samples" in said
    assert "devices hold 6,000:" in said
    uneven = samples(dataclasses.replace(seen, counts=np.arange(5991, 6001)))
    assert uneven is not None and "devices hold 5,991 to 6,000:" in uneven
    assert samples(seen_of("data.samples_per_device=6000", counts=np.full(10, 6000), num_samples=60_000)) is None


def test_a_privacy_budget_that_ends_early():
    counts = np.full(10, 6000)
    trusted = ("privacy.mode=device", "defences.use=[]", "defences.aggregator=mean")
    in_rounds = seen_of(*trusted, preset="fair", counts=counts, budget=np.full(10, 4), rounds=100)
    said = budget(in_rounds)
    assert said is not None and "epsilon 8 lasts for 4 of 100 rounds, after which no device takes part" in said
    assert "fewer rounds" in said and "privacy plan" not in said
    assert budget(dataclasses.replace(in_rounds, rounds=8)) is None
    # 480 steps at 24 in a round are 20 rounds; where half of the devices take turns, 40.
    in_steps = seen_of(preset="fair", counts=counts, budget=np.full(10, 480), rounds=100)
    assert in_steps.in_time[0] == 24
    said = budget(in_steps)
    assert said is not None and "lasts for 20 of 100 rounds if devices do all iterations that fit" in said
    assert said.endswith("('fairwave privacy plan' proposes settings)")
    turns = seen_of("cell.participants=5", preset="fair", counts=counts, budget=np.full(10, 480), rounds=100)
    said = budget(turns)
    assert said is not None and "lasts for 40 of 100 rounds" in said


def test_what_is_seen_of_a_run_is_what_the_run_does():
    scenario = clusters_scenario("data.samples_per_device=100", "radio.payload_bits=unset", devices=5)
    data = clusters()
    seen = outlook_of_run(scenario, 2, data)
    assert seen.counts is not None and seen.counts.tolist() == [60] * 5 and seen.num_samples == 300
    done = fairwave.simulate(scenario, ["max_power"], rounds=1, data=data)
    assert done.warnings == tuple(forewarnings(seen)) and len(done.warnings) == 1
    assert done.warnings[0].startswith("data.samples_per_device: 100 for each of 5 devices")


def test_iterations_are_held_to_the_data_in_training():
    draw = np.random.default_rng(0)
    inputs, labels = draw.normal(size=(500, 3)).astype(np.float32), draw.integers(0, 3, 500).astype(np.int32)
    data = DataSet(inputs, labels, inputs[:50], labels[:50])
    scenario = fairwave.load_scenario("paper-clean", [*TABLE, "cell.num_devices=4", "learning.batch_size=2"])
    most = math.ceil(125 / 2) * 10
    assert iterations_of_passes(2, np.array([125, 10])).tolist() == [most, 200]
    cell = SimulatedCell(scenario, SCHEMES["max_power"], model_of(scenario.learning), data)
    assert np.unique(cell.honest_devices.fleet.device.max_iterations).tolist() == [most]


def test_a_plan_says_it_on_standard_error(capsys, monkeypatch):
    asked = ("--set", "learning.model=softmax", "--set", "learning.layer_sizes=[784, 10]")
    said = command(capsys, monkeypatch, "plan", "small", "--no-fading", *asked)
    assert said.err.startswith("warning: radio.payload_bits: plans charge 875 kbit") and "warning" not in said.out
