"""From an order to the parties of a federation: its access points and its devices."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

from fairwave import schemes as registry
from fairwave.data.sources import DataSet
from fairwave.engine.round_record import Arrays
from fairwave.federate.access_point import AccessPoint
from fairwave.federate.client import DeviceAgent
from fairwave.federate.client_data import agreed_counts, own_samples
from fairwave.federate.settings import Settings
from fairwave.learning.models import model_of
from fairwave.runs.order import Order, Track
from fairwave.runs.training import check_layers, digest
from fairwave.types import Key


class Premises:
    """What the access points of all tracks share."""

    def __init__(self, order: Order, data: DataSet) -> None:
        check_layers(order.scenario, data)
        self._order, self._data, self._model = order, data, model_of(order.scenario.learning)

    def access_point(self, track: Track, secret: Key | None) -> AccessPoint:
        """Of one scheme and seed."""
        scenario, data = self._order.seeded(track.seed), self._data
        counts = agreed_counts(scenario, data.train_labels)
        test = (data.test_inputs, data.test_labels)
        return AccessPoint(scenario, registry.ALL[track.scheme], self._model, test, counts, secret)

    def fingerprint(self, point: AccessPoint) -> bytes:
        """Of all that a track reads from outside: first the test data, then how much everybody holds, and presence."""
        data, setup = self._data, [np.asarray(point.counts), *map(np.asarray, jax.tree.leaves(point.presence))]
        return digest(data.test_inputs, data.test_labels) + digest(*setup)

    def layout(self, point: AccessPoint) -> Arrays:
        """Where the scenario has the devices, and how many samples they hold; of which classes, only they know."""
        return {**point.geometry(), "samples": np.asarray(point.counts)[:, None]}


def device_agent(order: Order, settings: Settings, track: Track, index: int, data: DataSet, diary: Path) -> DeviceAgent:
    """One device, with its share of the data, or all of its own."""
    scenario = order.seeded(track.seed)
    check_layers(scenario, data)
    samples = own_samples(scenario, data, index)
    return DeviceAgent(scenario, registry.ALL[track.scheme], model_of(scenario.learning), samples, settings, diary)
