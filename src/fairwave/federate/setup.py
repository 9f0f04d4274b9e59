"""From an agreement to the parties of a federation: its access points and its devices."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

from fairwave.data.sources import DataSet
from fairwave.engine.round_record import Arrays
from fairwave.engine.server import AccessPoint
from fairwave.extensions import SCHEMES
from fairwave.federate.client import DeviceClient, TrainingPrograms
from fairwave.federate.client_data import agreed_counts, own_samples
from fairwave.federate.settings import Settings
from fairwave.learning.models import model_of
from fairwave.privacy.privacy_filter import Budget
from fairwave.runs.experiment import Experiment, check_layers, digest
from fairwave.runs.order import Order, Track
from fairwave.types import Key


def access_point(experiment: Experiment, track: Track, secret: Key | None) -> AccessPoint:
    """The access point of one scheme and seed; `secret` is the root of its noise."""
    scenario = experiment.order.seeded(track.seed)
    data = experiment.data
    return experiment.access_point(track, agreed_counts(scenario, data.train_labels, data.users), secret)


def fingerprint(experiment: Experiment, point: AccessPoint) -> bytes:
    """A digest of all that an access point reads from outside: first the test data, then holdings and presence."""
    data, setup = experiment.data, [np.asarray(point.counts), *map(np.asarray, jax.tree.leaves(point.presence))]
    return digest(data.test_inputs, data.test_labels) + digest(*setup)


def layout(point: AccessPoint) -> Arrays:
    """Where the scenario has the devices, and how many samples they hold; of which classes, only they know."""
    return {**point.geometry(), "samples": np.asarray(point.counts)[:, None]}


def device_client(
    order: Order,
    settings: Settings,
    track: Track,
    index: int,
    data: DataSet,
    state_file: Path,
    *,
    account: Path | None = None,
    own_budget: Budget | None = None,
    programs: TrainingPrograms | None = None,
) -> DeviceClient:
    """One device, with its share of the data, or all of its own; see `DeviceClient` for its account and its budget."""
    scenario = order.seeded(track.seed)
    check_layers(scenario, data)
    samples = own_samples(scenario, data, index)
    model = model_of(scenario.learning)
    return DeviceClient(
        scenario,
        SCHEMES[track.scheme],
        model,
        samples,
        settings,
        state_file,
        account=account,
        own_budget=own_budget,
        programs=programs,
    )
