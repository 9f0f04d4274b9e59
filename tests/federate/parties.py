"""Small federations for tests: three devices, a softmax model, seconds at most."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.round_record import Arrays, as_arrays
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.in_process import federate_in_process
from fairwave.federate.settings import Settings
from fairwave.learning.named_arrays import NamedArrays, flattened, named_arrays, unflattened
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.folder import DEVICES, MODELS
from fairwave.runs.order import Order, Track
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario

TINY = (
    "cell.num_devices=3",
    "data.samples_per_device=60",
    "learning.model=softmax",
    "learning.layer_sizes=[784, 10]",
    "learning.batch_size=16",
    "compute.bits_per_iteration=800e3",  # as with batches of 128: a plan of some 80 iterations
)
REPEATABLE = Settings(noise="simulation", telemetry=True, energy="model", keep_models="all", deadline_s=30.0)
TRACK = Track("proposed", 0)

Meddle = Callable[[ClientApp, Message, Context], Message]
"""Given the honest app, what really answers a message."""


def tiny(*overrides: str, preset: str = "small", rounds: int = 3, scheme: str = "proposed") -> Order:
    return Order.checked(load_scenario(preset, [*TINY, *overrides]), (scheme,), (0,), rounds)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a federation with one scheme and seed has stored."""

    records: list[Arrays]
    releases: list[ReleaseEvent]

    def of(self, content: str) -> list[ReleaseEvent]:
        """What devices have released of a kind, round by round."""
        return [event for event in self.releases if (event.content, event.sender) == (content, "device")]


def outcome(folder: Path) -> Outcome:
    store = RunStore(folder)
    track = next(store.order.tracks())
    held = Outcome(store.records(track), [event for _, event in store.releases(track)])
    store.close()
    return held


def federated(order: Order, folder: Path, settings: Settings = REPEATABLE, meddle: Meddle | None = None) -> Outcome:
    """A finished federation in one process."""
    agreement = Agreement(order, settings)
    honest = app_of(lambda: agreement, folder / DEVICES)
    federate_in_process(agreement, folder, "test", app=honest if meddle is None else Meddled(honest, meddle))
    return outcome(folder)


class Meddled(ClientApp):
    """An app whose every message passes through other hands."""

    def __init__(self, honest: ClientApp, meddle: Meddle) -> None:
        super().__init__()
        self._honest, self._meddle = honest, meddle

    def __call__(self, message: Message, context: Context) -> Message:
        return self._meddle(self._honest, message, context)


LIKE = {"0.bias": np.empty(10, np.float32), "0.weight": np.empty((784, 10), np.float32)}
"""The layout of the tiny model: the order in which its values travel."""


def flat(arrays: NamedArrays) -> np.ndarray:
    """A tiny model as it travels."""
    return flattened(arrays, LIKE)


def named(sent: np.ndarray) -> NamedArrays:
    """A tiny model that has travelled."""
    return unflattened(sent, LIKE)


def model_of_round(folder: Path, number: int, track: Track = TRACK) -> NamedArrays:
    with np.load(folder / MODELS / f"{track.scheme}-{track.seed}-round-{number}.npz") as held:
        return {name: held[name] for name in held.files}


def simulated(order: Order) -> list[tuple[NamedArrays, Arrays]]:
    """Model and record of every round, by the simulator.

    Vectorised, updates differ in the last digit, and rounding could send one to the other side: where there is
    rounding, devices are computed one at a time, as a client computes.
    """
    execution = Execution(form="threads") if order.scenario.learning.update_bits == 8 else BEST_HERE
    cell = Experiment(order, execution=execution).cell(next(order.tracks()))
    done = run_rounds(cell, order.rounds)
    return [(named_arrays(each.state.server.global_params), as_arrays(each.record)) for each in done]


def close(one: NamedArrays, other: NamedArrays, tolerance: float = 1e-6) -> bool:
    same = jax.tree.map(lambda a, b: bool(np.allclose(a, b, rtol=0.0, atol=tolerance)), one, other)
    return set(one) == set(other) and all(same.values())
