"""Answers that come after the deadline are used in the round in which they are found, as in a simulation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp

from fairwave.double_precision import double_precision
from fairwave.engine.invitation import straggle
from fairwave.engine.round_record import OF_LATE_UPDATES
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.flower_records import ANSWER, TASK
from fairwave.federate.in_process import LocalGrid, identity
from fairwave.federate.late_answers import LateAnswers
from fairwave.federate.protocol import Status
from fairwave.federate.settings import Settings
from fairwave.federate.strategy import UtilityFair
from fairwave.keys import run_key
from fairwave.runs.faults import Fault
from fairwave.runs.folder import DEVICES
from fairwave.runs.order import Order
from tests.federate.parties import REPEATABLE, Outcome, close, model_of_round, outcome, simulated, tiny

HASTY = REPEATABLE.model_copy(update={"deadline_s": 0.5, "quorum": 0.01})
REPORTED_IN_TIME = {
    *("optimal_iterations", "local_iterations", "transmit_power_w", "uplink_rate_bps", "compute_energy_j"),
    *("transmit_energy_j", "energy_j", "utility", "loss", "received_loss", "update_norm"),
}
"""What a device tells of itself with its answer: of one that is late, nobody knows it in the round that it is about."""
UNKNOWN = {"global_loss", "membership_auc", "distance_now_m"}
OFTEN_LATE = ("cell.num_devices=4", "cell.straggler_probability=0.4", "learning.late_rounds=2")


@dataclasses.dataclass
class _Held:
    device: int
    round: int
    reply: Message
    free: bool = False


class DelayingGrid(LocalGrid):
    """Holds updates of the scenario's stragglers back until a later round in which they do not straggle has begun."""

    def __init__(self, app: ClientApp, order: Order) -> None:
        self._cell, self._seed = order.scenario.cell, order.seeds[0]
        super().__init__(app, self._cell.num_devices)
        self._held: dict[str, _Held] = {}
        self._begun = -1

    def _straggling(self, number: int) -> np.ndarray:
        with double_precision():
            root = run_key(self._seed)
            cell = self._cell
            return np.asarray(straggle(cell.num_devices, cell.straggler_probability, root, jnp.asarray(number)))

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        messages = list(messages)
        pushed = list(super().push_messages(messages))
        for name, message in zip(pushed, messages, strict=True):
            if message.metadata.message_type == "train.update":
                self._hold(name, message)
        numbers = [int(m.content[TASK]["round"]) for m in messages if m.metadata.message_type.startswith("train.")]
        if numbers and max(numbers) > self._begun:
            self._begun = max(numbers)
            self._release()
        return pushed

    def _hold(self, name: str, message: Message) -> None:
        device, number = message.metadata.dst_node_id - 1_000, int(message.content[TASK]["round"])
        status = Status(str(self._replies[name].content[ANSWER]["status"]))
        if self._straggling(number)[device] and status in (Status.SENT, Status.LOST):
            self._held[name] = _Held(device, number, self._replies.pop(name))

    def _release(self) -> None:
        """Who does not straggle again in this round gets through, and the access point has the time to notice."""
        straggling = self._straggling(self._begun)
        for name, held in list(self._held.items()):
            if held.round < self._begun and not straggling[held.device]:
                self._replies[name] = held.reply
                del self._held[name]
                end = time.monotonic() + 5.0
                while name in self._replies and time.monotonic() < end:
                    time.sleep(0.02)
        time.sleep(0.1)


def federated(order: Order, folder: Path, settings: Settings = HASTY) -> Outcome:
    agreement = Agreement(order, settings)
    with identity():
        grid = DelayingGrid(app_of(lambda: agreement, folder / DEVICES), order)
        UtilityFair(agreement, folder, "test").start(grid)
    return outcome(folder)


SCENARIOS = {
    "one exchange": ("learning.gradient_exchange=false",),
    "paper": (),
    "a bad channel": ("cell.participants=3", "radio.channel_error_std=0.3"),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n != "paper" else ()) for n in SCENARIOS])
def test_every_round_is_the_simulators(name: str, tmp_path: Path) -> None:
    order = tiny(*OFTEN_LATE, *SCENARIOS[name], rounds=6)
    stored = federated(order, tmp_path / "run").records
    expected = simulated(order)
    assert len(stored) == len(expected)
    for number, (model, record) in enumerate(expected, start=1):
        kept, late = stored[number - 1], record["late"]
        assert close(model_of_round(tmp_path / "run", number), model), number
        for array in record.keys() - UNKNOWN:
            known = ~late if array in REPORTED_IN_TIME else np.ones(late.shape, bool)
            ours, theirs = (np.broadcast_to(np.asarray(r[array], float), known.shape) for r in (kept, record))
            assert np.allclose(ours[known], theirs[known], rtol=1e-6, atol=1e-6, equal_nan=True), (number, array)
        assert (kept["update_fault"][late] == Fault.LATE).all()
    assert set(OF_LATE_UPDATES) <= set(stored[0])
    assert sum((r["late_age"] > 0).sum() for r in stored) and any((r["late_age"] > 0).any() for r in stored[1:])


@pytest.mark.slow
def test_a_federation_that_drops_late_updates_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail."""
    monkeypatch.setattr(LateAnswers, "update", lambda self, nodes=None: None)
    with pytest.raises(AssertionError):
        test_every_round_is_the_simulators("paper", tmp_path)
