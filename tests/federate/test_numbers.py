"""A federation whose devices predict numbers, from CSV files of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.data.sources import load_for
from fairwave.federate.client_data import own_samples
from fairwave.federate.log_lines import in_words
from fairwave.federate.settings import Settings
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from tests.builders import WEATHER, weather_folder
from tests.federate.parties import REPEATABLE, federated

PRIVATE = (
    "learning.features=none",
    "privacy.clip_norm=5",
    "privacy.max_epsilon=50",
    "defences.use=[]",
    "defences.validation_samples=50",
)


@pytest.mark.parametrize(
    ("preset", "settings", "more"),
    [("small", REPEATABLE, ()), ("fair", Settings(energy="model"), (*PRIVATE, "privacy.noise_source=hardened"))],
)
def test_devices_with_numbers_of_their_own(preset, settings, more, tmp_path: Path) -> None:
    """Each trains on its own file; the access point knows the error on its test data, and says so in its log."""
    for place, name in enumerate(("ap", "0", "1", "2")):
        weather_folder(tmp_path / name, seed=place)
    own = (f"data.source={tmp_path / 'ap'}", "data.partition={law='own'}", "data.samples_per_device=200")
    scenario = load_scenario(preset, [*WEATHER, *own, *more])

    def brings(honest: ClientApp, message: Message, context: Context) -> Message:
        given = {**context.node_config, "data": str(tmp_path / str(context.node_config["partition-id"]))}
        return honest(message, Context(1, context.node_id, given, context.state, {}))

    held = federated(Order(scenario, ("proposed",), (0,), 2), tmp_path / "run", settings, brings)
    assert held.records[-1]["delivered"].all()
    error = float(held.records[-1]["test_rmse"])
    assert error < 4.0  # without a model, 20
    assert np.isnan(held.records[-1]["test_accuracy"])
    lines = [json.loads(line) for line in (tmp_path / "run" / "federation.jsonl").read_text("utf-8").splitlines()]
    told = [line for line in lines if line["event"] == "round"][-1]
    assert told["test_rmse"] == pytest.approx(error) and told["test_accuracy"] is None
    assert f"test RMSE {error:.3f}" in in_words(told) and "accuracy" not in in_words(told)


def test_labels_of_a_device_stay_as_they_are(tmp_path: Path) -> None:
    """A class that the network does not have becomes its last one; a number is never cut off."""
    folder = weather_folder(tmp_path / "own")
    own = (f"data.source={folder}", "data.partition={law='own'}", "data.samples_per_device=200")
    scenario = load_scenario("small", [*WEATHER, *own])
    data = load_for(scenario.data, str(folder))
    written = np.loadtxt(folder / "train.csv", delimiter=",", skiprows=1)[:200, 0]
    np.testing.assert_allclose(own_samples(scenario, data, 1).labels, written, rtol=1e-6)
