"""Labels that are wrong and inputs that are changed on some devices, against loops over samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fairwave
from fairwave.data.as_held import as_held, holders, noisy_labels
from fairwave.data.partition import holdings_of
from fairwave.engine.cell import SimulatedCell
from fairwave.errors import ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.federate.client_data import own_samples
from fairwave.federate.task_checks import agreement_digest
from fairwave.learning.models import model_of
from fairwave.scenario.parameters import Scenario
from tests.builders import WEATHER, clusters, clusters_scenario, weather_folder

NOISE = "data.label_noise=[0, 0.3, 0.9]"


def held_labels(scenario: Scenario) -> np.ndarray:
    data = clusters()
    return as_held(scenario, data, holdings_of(scenario, data.train_labels)).train_labels


def test_each_device_has_its_share_of_wrong_labels():
    scenario, labels = clusters_scenario(NOISE, devices=3), clusters().train_labels
    held, holdings = held_labels(scenario), holdings_of(scenario, clusters().train_labels)
    for device, share in enumerate((0.0, 0.3, 0.9)):
        own = holdings.of(device)
        wrong = sum(held[sample] != labels[sample] for sample in own)
        assert abs(wrong - share * own.size) <= 4.0 * np.sqrt(share * (1.0 - share) * own.size)
    assert held.dtype == labels.dtype and set(held.tolist()) == {0, 1, 2}


def test_wrong_labels_are_drawn_evenly_from_the_other_classes():
    labels = np.repeat(np.arange(5, dtype=np.int32), 4_000)
    wrong = noisy_labels(labels, np.ones(labels.size), 5, seed=3)
    table = np.array([[np.sum(wrong[labels == true] == said) for said in range(5)] for true in range(5)])
    assert (np.diag(table) == 0).all()
    off = table[~np.eye(5, dtype=bool)]
    assert np.abs(off - 1_000).max() < 5.0 * np.sqrt(1_000 * 0.75)  # false alarm below 2e-5


def test_more_noise_keeps_the_wrong_labels_wrong_and_seeds_differ():
    labels = np.zeros(1_000, np.int32)
    less, more, other = (
        noisy_labels(labels, np.full(1_000, share), 4, seed) for share, seed in ((0.2, 0), (0.6, 0), (0.2, 1))
    )
    assert (more[less > 0] == less[less > 0]).all() and (more > 0).sum() > 2 * (less > 0).sum()
    assert not np.array_equal(less, other)


def test_one_share_for_all_and_samples_that_nobody_holds():
    scenario = clusters_scenario("data.label_noise=1", "data.samples_per_device=20", devices=3)
    labels, holdings = clusters().train_labels, holdings_of(scenario, clusters().train_labels)
    holder = holders(holdings, labels.size)
    mine = np.concatenate([holdings.of(device) for device in range(3)])
    assert sorted(np.flatnonzero(holder >= 0).tolist()) == sorted(mine.tolist())
    np.testing.assert_array_equal(held_labels(scenario) != labels, holder >= 0)


def test_shares_that_are_refreshed_are_noisy_as_a_whole():
    scenario = clusters_scenario(
        "data.label_noise=[1, 0, 0]", "data.samples_per_device=20", "data.refreshed_samples=5", devices=3
    )
    labels, holdings = clusters().train_labels, holdings_of(scenario, clusters().train_labels)
    for number in (0, 3, 11):
        assert (held_labels(scenario)[holdings.of(0, number)] != labels[holdings.of(0, number)]).all()
        assert (held_labels(scenario)[holdings.of(1, number)] == labels[holdings.of(1, number)]).all()


def test_simulated_and_federated_devices_hold_the_same_and_tests_stay_clean():
    scenario, data = clusters_scenario(NOISE, devices=3), clusters()
    cell = SimulatedCell(scenario, SCHEMES["max_power"], model_of(scenario.learning), data)
    labels = np.asarray(cell.honest_devices.samples[1])
    np.testing.assert_array_equal(np.asarray(cell.access_point.test[1]), data.test_labels)
    for device in range(3):
        own = cell.honest_devices.holdings.of(device)
        np.testing.assert_array_equal(own_samples(scenario, data, device).labels[: own.size], labels[own])


def test_without_noise_nothing_changes_and_federations_go_on():
    data, scenario = clusters(), clusters_scenario(devices=3)
    assert as_held(scenario, data, holdings_of(scenario, data.train_labels)) is data
    digests = [
        agreement_digest(clusters_scenario(*noise, devices=3), "max_power", "simulation")
        for noise in ((), ("data.label_noise=0",), (NOISE,))
    ]
    assert digests[0] == digests[1] != digests[2]


SHIFT = ("data.input_gain=[1, 1.5, 0.5]", "data.input_offset=[0, -0.1, 0.4]")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.int64])
def test_inputs_are_changed_value_by_value(kind):
    scenario, data = clusters_scenario(*SHIFT, "data.samples_per_device=60", devices=3), clusters()
    factor = 257 if kind is np.uint16 else 1
    data = dataclasses.replace(data, train_inputs=data.train_inputs.astype(kind) * kind(factor))
    holdings = holdings_of(scenario, data.train_labels)
    held = as_held(scenario, data, holdings).train_inputs
    most = {np.uint8: 255, np.uint16: 65_535}.get(kind)
    assert held.dtype == (np.float32 if kind is np.int64 else kind)
    expected = data.train_inputs.astype(np.float64)
    for device, (gain, offset) in enumerate(((1.0, 0.0), (1.5, -0.1), (0.5, 0.4))):
        for sample in holdings.of(device):
            for place, value in enumerate(data.train_inputs[sample].tolist()):
                moved = gain * value + offset * (most or 1)
                expected[sample, place] = min(max(round(moved), 0), most) if most else moved
    np.testing.assert_allclose(held, expected, rtol=1e-6)
    assert (held != data.train_inputs).any() and not np.shares_memory(held, data.train_inputs)


def test_simulated_and_federated_devices_have_the_same_inputs():
    scenario, data = clusters_scenario(*SHIFT, devices=3), clusters()
    cell = SimulatedCell(scenario, SCHEMES["max_power"], model_of(scenario.learning), data)
    for device in range(3):
        own = cell.honest_devices.holdings.of(device)
        ours = np.asarray(cell.honest_devices.samples[0])[own]
        np.testing.assert_array_equal(own_samples(scenario, data, device).inputs[: own.size], ours)
    np.testing.assert_array_equal(np.asarray(cell.access_point.test[0]), data.test_inputs)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("data.label_noise=1.1",), "data.label_noise"),
        (("data.label_noise=[0.1, -0.1]",), "data.label_noise"),
        (("data.label_noise=0.1", "data.partition={law='own'}", "data.samples_per_device=5"), "they are the devices'"),
        (("data.input_gain=0",), "data.input_gain"),
        (("data.input_offset=2e6",), "data.input_offset"),
        (
            ("data.input_gain=2", "data.partition={law='own'}", "data.samples_per_device=5"),
            "input_gain changes samples",
        ),
    ],
)
def test_what_cannot_be_is_refused(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        fairwave.load_scenario("small", list(overrides))


def test_features_are_of_the_data_set():
    with pytest.raises(
        ScenarioError, match=r"data.input_gain or data.input_offset with learning.features 'scattering'"
    ):
        fairwave.load_scenario("fair", ["data.input_offset=0.1"])


def test_numbers_have_no_other_class(tmp_path):
    where = f"data.source={weather_folder(tmp_path / 'weather')}"
    with pytest.raises(ScenarioError, match=r"data.label_noise replaces classes, and data.target is 'number'"):
        fairwave.load_scenario("small", [*WEATHER, where, "data.label_noise=0.1"])
