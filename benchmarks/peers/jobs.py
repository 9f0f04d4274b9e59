"""The jobs that fairwave and its peers are given: data, who holds what, first weights, and the least work of a round.

NumPy and the standard library alone, so that every environment can import it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

MNIST = Path(__file__).parents[2] / "src" / "fairwave" / "data" / "mnist.npz"
SEED = 7
Weights = list[tuple[np.ndarray, np.ndarray]]
"""Of each layer: its matrix, inputs by outputs, and its biases."""


class Data(NamedTuple):
    """MNIST as single precision in [0, 1]."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Pass(NamedTuple):
    """So many passes of that many samples through the network, each with or without the way back."""

    rows: int
    backward: bool
    times: int


@dataclasses.dataclass(frozen=True)
class Job:
    """Federated averaging of a dense network on MNIST, dealt out evenly by one permutation."""

    name: str
    title: str
    layers: tuple[int, ...]
    clients: int
    cohort: int
    """Clients that train in a round."""
    steps: int
    batch: int
    learning_rate: float
    replace: bool
    """Batches are drawn with replacement; else a round is one pass over the client's samples."""
    rounds_per_turn: int
    """Rounds that a candidate runs each time it is its turn."""

    @property
    def held(self) -> int:
        """Samples of one client."""
        return 60_000 // self.clients

    def holdings(self) -> np.ndarray:
        """Sample numbers, a row per client."""
        return self.rng().permutation(60_000).reshape(self.clients, self.held)

    def rng(self, *address: int) -> np.random.Generator:
        """A generator of its own for each address, such as a round and a client."""
        return np.random.default_rng((SEED, *address))

    def chosen(self, rng: np.random.Generator) -> np.ndarray:
        """Clients of one round."""
        if self.cohort == self.clients:
            return np.arange(self.clients)
        return rng.choice(self.clients, self.cohort, replace=False)

    def picks(self, rng: np.random.Generator) -> np.ndarray:
        """Places of one client's batches among its own samples, a row per step."""
        if self.replace:
            return rng.integers(0, self.held, (self.steps, self.batch))
        return rng.permutation(self.held).reshape(self.steps, self.batch)

    def weights(self) -> Weights:
        """The first global model: uniform within 1 / sqrt(inputs)."""
        rng, layers = self.rng(1), []
        for inputs, outputs in itertools.pairwise(self.layers):
            bound = 1.0 / math.sqrt(inputs)
            weight = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
            layers.append((weight, rng.uniform(-bound, bound, outputs).astype(np.float32)))
        return layers

    def passes(self) -> list[Pass]:
        """Of one round of local training."""
        return [Pass(self.batch, True, self.cohort * self.steps)]

    def gflop(self) -> float:
        """The least floating point work of one round of local training, in 10^9 operations."""
        return gflop(self.layers, self.passes())


@functools.cache
def mnist() -> Data:
    """The data set, read once a process."""
    with np.load(MNIST) as stored:
        images = [stored[name].reshape(-1, 784).astype(np.float32) / 255.0 for name in ("train_images", "test_images")]
        labels = [stored[name].astype(np.int64) for name in ("train_labels", "test_labels")]
    return Data(images[0], labels[0], images[1], labels[1])


def shares(job: Job) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs and labels of every client."""
    data = mnist()
    return [(data.train_x[own], data.train_y[own]) for own in job.holdings()]


def products(layers: Sequence[int], one: Pass) -> list[tuple[int, int, int]]:
    """Matrix products (m, k, n) of one pass: forward, by weights, and by inputs from the second layer on."""
    sizes = list(itertools.pairwise(layers))
    forward = [(one.rows, inputs, outputs) for inputs, outputs in sizes]
    if not one.backward:
        return forward
    by_weights = [(inputs, one.rows, outputs) for inputs, outputs in sizes]
    by_inputs = [(one.rows, outputs, inputs) for inputs, outputs in sizes[1:]]
    return forward + by_weights + by_inputs


def gflop(layers: Sequence[int], passes: Iterable[Pass]) -> float:
    """Floating point operations of all matrix products of some passes, in 10^9."""
    return sum(2e-9 * m * k * n * one.times for one in passes for m, k, n in products(layers, one))


def accuracy(weights: Weights) -> float:
    """Share of test samples whose most likely class is the right one."""
    data = mnist()
    hidden = data.test_x
    for index, (weight, bias) in enumerate(weights):
        hidden = hidden @ weight + bias
        hidden = np.maximum(hidden, 0.0) if index < len(weights) - 1 else hidden
    return float(np.mean(hidden.argmax(axis=1) == data.test_y))


PAPER = Job(
    name="paper-round",
    title="10 clients, 90 steps of 128 samples, MLP 784-128-64-10",
    layers=(784, 128, 64, 10),
    clients=10,
    cohort=10,
    steps=90,
    batch=128,
    learning_rate=0.01,
    replace=True,
    rounds_per_turn=1,
)
TINY = Job(
    name="tiny-clients",
    title="10 of 1,000 clients, 6 steps of 10 samples, softmax regression 784-10",
    layers=(784, 10),
    clients=1_000,
    cohort=10,
    steps=6,
    batch=10,
    learning_rate=0.03,
    replace=False,
    rounds_per_turn=20,
)
ALL = {job.name: job for job in (PAPER, TINY)}
