"""The samples of one device: its share of the scenario's data set, or files of its own."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fairwave.data.as_held import as_held
from fairwave.data.partition import holdings_of, places_held
from fairwave.data.sources import DataSet
from fairwave.errors import ScenarioError
from fairwave.learning.features import featured
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.partition_laws import Own


@dataclasses.dataclass(frozen=True)
class OwnSamples:
    """What one device holds, and how many samples every device is known to hold."""

    index: int
    inputs: np.ndarray
    """Its whole share, out of which it holds some at a time."""
    labels: np.ndarray
    counts: np.ndarray
    """Samples that every device holds: public, for the privacy account rests on them."""
    refreshed: int

    @property
    def count(self) -> int:
        """Samples that it holds at a time."""
        return int(self.counts[self.index])

    @functools.cached_property
    def labelled(self) -> tuple[Array, Array]:
        """Inputs and labels of all of its share."""
        return jnp.asarray(self.inputs), jnp.asarray(self.labels)

    def at(self, number: int) -> Int[Array, " held"]:
        """Which of them it holds in a round, padded to the largest holding of any device."""
        return jnp.asarray(places_held(number * self.refreshed, int(self.counts.max()), self.labels.size))


def agreed_counts(scenario: Scenario, labels: np.ndarray, users: np.ndarray | None = None) -> np.ndarray:
    """How many samples each device holds, out of a data set with these labels and users, or of its own."""
    if isinstance(scenario.data.partition, Own):
        return np.full(scenario.cell.num_devices, scenario.data.samples_per_device, np.int32)
    return holdings_of(scenario, labels, users).counts


def own_samples(scenario: Scenario, data: DataSet, index: int) -> OwnSamples:
    """One device's samples; `data` is the scenario's data set, or the device's own where the partition says so."""
    if isinstance(scenario.data.partition, Own):
        wanted = scenario.data.samples_per_device or 0
        if data.train_labels.size < wanted:
            raise ScenarioError(
                f"data.samples_per_device: device {index} has {data.train_labels.size} samples of its own, fewer than "
                f"{wanted}; lower it, or give the device more"
            )
        counts = agreed_counts(scenario, data.train_labels)
        labels = data.train_labels[:wanted]
        if data.target == "class":
            # A class that the network does not have becomes its last one. To refuse it would tell of one record.
            labels = np.minimum(labels, scenario.learning.layer_sizes[-1] - 1)
        inputs = featured(scenario.learning, data.train_inputs[:wanted])
        return OwnSamples(index, inputs, labels, counts, refreshed=0)
    shared = holdings_of(scenario, data.train_labels, data.users)
    mine = shared.samples[index, : min(int(shared.shares[index]), shared.samples.shape[1])]
    data = as_held(scenario, data, shared)
    inputs = featured(scenario.learning, data.train_inputs[mine])
    return OwnSamples(index, inputs, data.train_labels[mine], shared.counts, shared.refreshed)
