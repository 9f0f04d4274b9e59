"""The warning about rules that punish rare data."""

from __future__ import annotations

import numpy as np

from fairwave.metrics.rare_data import class_distance, holds_rare_data
from fairwave.report.rare_data_section import rare_data_section
from tests.made_up_results import made_up_results

DEVICES = 5


def held(rare: bool) -> np.ndarray:
    """Ten classes; with `rare`, the last device alone holds the last two classes."""
    samples = np.full((DEVICES, 10), 10)
    if rare:
        samples[:, 8:] = 0
        samples[-1] = [5] * 8 + [20, 20]
    return samples


def run(samples: np.ndarray, deviation: np.ndarray, cheating: np.ndarray | None = None):
    shape = (1, 2, 3, DEVICES)
    results = made_up_results(
        ["<b>proposed</b>"],
        seeds=2,
        path_loss_db=np.arange(DEVICES),
        loss=np.ones(shape),
        energy_j=np.ones(shape),
        deviation=np.broadcast_to(deviation, shape),
        cheating=np.zeros(shape, bool) if cheating is None else np.broadcast_to(cheating, shape),
    )
    return results.assign(samples=(("seed", "device", "class"), np.stack([samples, samples])))


def test_distance_by_hand():
    samples = np.array([[10, 0], [10, 0], [0, 20]])
    np.testing.assert_allclose(class_distance(samples), [0.5, 0.5, 0.5])
    assert not holds_rare_data(samples).any()
    np.testing.assert_allclose(class_distance(np.array([[3, 1], [1, 3], [0, 0]])), [0.25, 0.25, 0.5])
    np.testing.assert_array_equal(holds_rare_data(held(rare=True)), np.arange(DEVICES) == DEVICES - 1)
    assert not holds_rare_data(held(rare=False)).any()


def test_it_warns_where_rare_data_are_punished_and_only_there():
    last = np.arange(DEVICES) == DEVICES - 1
    page = rare_data_section(run(held(rare=True), np.where(last, 0.8, 0.1)))
    assert "their mean deviation is 0.80, that of the other honest devices 0.10" in page and "<b>" not in page
    assert rare_data_section(run(held(rare=True), np.full(DEVICES, 0.4))) == ""
    assert rare_data_section(run(held(rare=False), np.where(last, 0.8, 0.1))) == ""


def test_devices_that_cheat_are_left_out():
    last = np.arange(DEVICES) == DEVICES - 1
    assert rare_data_section(run(held(rare=True), np.where(last, 0.8, 0.1), cheating=last)) == ""


def test_nothing_is_said_where_classes_are_not_known():
    last = np.arange(DEVICES) == DEVICES - 1
    assert rare_data_section(run(held(rare=True)[:, :1], np.where(last, 0.8, 0.1))) == ""
