"""Who holds which samples: one array of sample numbers per device."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fairwave.data.rare_classes import rare_classes
from fairwave.data.sources import USERS
from fairwave.errors import ScenarioError
from fairwave.keys import Stream, host_generator
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.partition_laws import Dirichlet, FromFile, Iid, Own, Partition, QuantitySkew, Rare, Shards, Users
from fairwave.scenario.table_files import TableFile


@dataclasses.dataclass(frozen=True)
class Holdings:
    """Each device's share of the samples, and how many of it the device holds at a time."""

    samples: np.ndarray
    """Sample numbers of every device's share, padded to the largest."""
    shares: np.ndarray
    """How many of these are the device's."""
    counts: np.ndarray
    """How many of them it holds at a time."""
    refreshed: int
    """How many of them it replaces every round."""

    def of(self, device: int, round_index: int = 0) -> np.ndarray:
        """The samples that one device holds in a round."""
        place = places_held(round_index * self.refreshed, self.counts[device], self.shares[device])
        return np.asarray(self.samples[device, place])


def places_held(first: Any, size: int, share: Any) -> Any:
    """Places, within a device's share, of the samples that it holds: a window that slides and wraps around.

    `first` and `share`, the number of samples in it, may be plain numbers or JAX's.
    """
    return (first + np.arange(size)) % share


def share_out(
    law: Partition,
    labels: np.ndarray,
    num_devices: int,
    seed: int,
    *,
    users: np.ndarray | None = None,
    samples_per_device: int | None = None,
    refreshed: int = 0,
) -> Holdings:
    """The samples of every device under a law; at most `samples_per_device` at a time where that is given.

    `users` says whose each sample is, where that is known.
    With `refreshed`, that window slides over the device's share by so many samples a round: the number of samples
    stays the same, and so does the law.
    """
    draw = host_generator(seed, Stream.PARTITION)
    match law:
        case Iid():
            parts = np.array_split(draw.permutation(labels.size), num_devices)
        case Dirichlet():
            parts = _by_class(labels, num_devices, law.alpha, draw)
        case Shards():
            parts = _shards(labels, num_devices, law.per_device, draw)
        case QuantitySkew():
            cuts = np.cumsum(draw.dirichlet(np.full(num_devices, law.alpha)))[:-1] * labels.size
            parts = np.split(draw.permutation(labels.size), cuts.round().astype(int))
        case Rare():
            parts = rare_classes(law, labels, num_devices, draw)
        case FromFile():
            parts = _from_file(law, labels.size, num_devices)
        case Users():
            parts = _by_user(users, num_devices, draw)
        case Own():
            raise ScenarioError(
                "data.partition: with law 'own' devices bring their data, which only 'fairwave federate' can ask for; "
                "choose another law to simulate"
            )
    empty = [device for device, part in enumerate(parts) if part.size == 0]
    if empty:
        raise ScenarioError(
            f"data.partition: device {empty[0]} gets none of the {labels.size} samples; use fewer devices, more data, "
            "or a milder law"
        )
    shares = np.array([part.size for part in parts], np.int32)
    counts = np.minimum(shares, samples_per_device or shares.max()).astype(np.int32)
    full = np.flatnonzero(counts == shares)
    if refreshed and full.size:
        raise ScenarioError(
            f"data.refreshed_samples: device {full[0]} already holds all {shares[full[0]]} samples of its share; set "
            "data.samples_per_device below that, or refreshed_samples to 0"
        )
    samples = np.zeros((num_devices, (shares if refreshed else counts).max()), np.int32)
    for device, part in enumerate(parts):
        samples[device, : part.size] = part[: samples.shape[1]]
    return Holdings(samples, shares, counts, refreshed)


def holdings_of(scenario: Scenario, labels: np.ndarray, users: np.ndarray | None = None) -> Holdings:
    """The samples of every device of a scenario, out of a data set with these labels, and users where it has them."""
    data = scenario.data
    return share_out(
        data.partition,
        labels,
        scenario.cell.num_devices,
        scenario.run.seed,
        users=users,
        samples_per_device=data.samples_per_device,
        refreshed=data.refreshed_samples,
    )


def _by_class(labels: np.ndarray, num_devices: int, alpha: float, draw: np.random.Generator) -> list[np.ndarray]:
    parts: list[list[np.ndarray]] = [[] for _ in range(num_devices)]
    for value in np.unique(labels):
        members = draw.permutation(np.flatnonzero(labels == value))
        cuts = np.cumsum(draw.dirichlet(np.full(num_devices, alpha)))[:-1] * members.size
        for device, piece in enumerate(np.split(members, cuts.round().astype(int))):
            parts[device].append(piece)
    return [draw.permutation(np.concatenate(pieces)) for pieces in parts]


def _shards(labels: np.ndarray, num_devices: int, per_device: int, draw: np.random.Generator) -> list[np.ndarray]:
    ordered = draw.permutation(labels.size)
    ordered = ordered[np.argsort(labels[ordered], kind="stable")]
    shards = np.array_split(ordered, num_devices * per_device)
    dealt = draw.permutation(len(shards)).reshape(num_devices, per_device)
    return [draw.permutation(np.concatenate([shards[shard] for shard in hand])) for hand in dealt]


def _by_user(users: np.ndarray | None, num_devices: int, draw: np.random.Generator) -> list[np.ndarray]:
    """Device k holds what the k-th person has, in the order of their numbers."""
    if users is None:
        raise ScenarioError(
            "data.partition: the data set does not say whose its samples are, as law 'users' needs; choose another "
            f"law, or in data.source 'har' or an .npz file with an array {USERS}"
        )
    people = np.unique(users)
    if people.size != num_devices:
        raise ScenarioError(
            f"data.partition: law 'users' has a device per person, {people.size} in all, but cell.num_devices is "
            f"{num_devices}; set cell.num_devices={people.size}"
        )
    return [draw.permutation(np.flatnonzero(users == person)) for person in people]


def _from_file(law: FromFile, num_samples: int, num_devices: int) -> list[np.ndarray]:
    owner = TableFile(law.file).column(law.column)
    if owner.size != num_samples:
        raise ScenarioError(f"{law.file}: {owner.size} rows for {num_samples} samples; give the device of each sample")
    if owner.max() >= num_devices or owner.min() < -1 or (owner != np.floor(owner)).any():
        raise ScenarioError(
            f"{law.file}: column '{law.column}' holds values outside -1 .. {num_devices - 1}; number devices from 0"
        )
    return [np.flatnonzero(owner == device) for device in range(num_devices)]
