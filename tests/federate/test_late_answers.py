"""Answers that come after the deadline are used in the round in which they are found, as in a simulation."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp

from fairwave.double_precision import double_precision
from fairwave.engine.invitation import Invitation, straggle
from fairwave.engine.late_updates import LateUpload, arrivals
from fairwave.engine.round_record import OF_LATE_UPDATES
from fairwave.engine.server_steps import Upload
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.flower_records import ANSWER, TASK
from fairwave.federate.in_process import LocalGrid, identity
from fairwave.federate.late_answers import LateAnswers
from fairwave.federate.messaging import Reply
from fairwave.federate.protocol import Answer, Status
from fairwave.federate.server_round import per_try
from fairwave.federate.settings import Settings
from fairwave.federate.setup import access_point
from fairwave.federate.strategy import UtilityFair
from fairwave.federate.task_checks import agreement_digest
from fairwave.keys import run_key
from fairwave.runs.experiment import Experiment
from fairwave.runs.faults import Fault
from fairwave.runs.folder import DEVICES
from fairwave.runs.order import Order
from tests.federate.parties import REPEATABLE, TRACK, Outcome, close, model_of_round, outcome, simulated, tiny

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
        self.spent: dict[int, int] = {}
        """What every device says of itself that it has released so far, whether anybody hears it or not."""

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
                device, answer = message.metadata.dst_node_id - 1_000, self._replies[name].content[ANSWER]
                self.spent[device] = int(answer["spent"])
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
    "8 bits": ("learning.update_bits=8",),
    "a bad channel": (
        *("cell.num_devices=6", "cell.participants=4", "cell.straggler_probability=0.25"),
        "radio.channel_error_std=0.3",
    ),
}
"""In no round is everybody late who is asked: a federation would try it again, for want of a quorum."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
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
def test_the_ledger_charges_late_steps_once_and_never_below_the_diaries(tmp_path: Path) -> None:
    """A late answer is charged at its worst in the round in which it was asked, and not again when it is found."""
    private = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset", *OFTEN_LATE)
    order = tiny(*private, preset="fair-mlp", rounds=6)
    settings = HASTY.model_copy(update={"noise": "hardened"})
    agreement = Agreement(order, settings)
    with identity():
        grid = DelayingGrid(app_of(lambda: agreement, tmp_path / "run" / DEVICES), order)
        UtilityFair(agreement, tmp_path / "run", "test").start(grid)
    held, most = outcome(tmp_path / "run"), per_try(access_point(Experiment(order), TRACK, None)).most_steps
    late = np.sum([record["late"] for record in held.records], axis=0)
    asked = np.sum([record["participating"] for record in held.records], axis=0)
    assert held.records[0]["late"].any() and np.any([record["late_age"] > 0 for record in held.records])
    for device, truth in grid.spent.items():
        charged = sum(int(event.steps[event.devices == device].sum()) for event in held.of("update"))
        assert truth <= charged <= asked[device] * most[device]
        assert late[device] or charged == truth


@pytest.mark.slow
def test_a_federation_goes_on_after_a_crash_while_somebody_is_late(tmp_path: Path) -> None:
    """Whoever was waited for is asked anew; every round is concluded, and nobody learns from a round twice."""
    order = tiny(*OFTEN_LATE, rounds=6)
    for rounds in (1, 2, 6):
        stored = federated(dataclasses.replace(order, rounds=rounds), tmp_path / "run").records
        assert len(stored) == rounds
    assert stored[0]["late"].any() or stored[1]["late"].any()
    assert all(np.isfinite(record["deviation"]).all() for record in stored)


class _Waiting:
    """What the exchanges have to tell: nodes that are waited for, and replies that have come."""

    def __init__(self) -> None:
        self.awaited: set[int] = set()
        self.came: dict[int, Reply] = {}
        self.given_up: set[int] = set()

    def awaits(self, node: int) -> bool:
        return node in self.awaited

    def late_replies(self) -> dict[int, Reply]:
        came, self.came = self.came, {}
        self.awaited -= set(came)
        return came

    def give_up(self, nodes: Iterable[int]) -> None:
        self.given_up |= set(nodes)
        self.awaited -= set(nodes)


REPLY: Reply = ValueError("stands for any reply")
OTHER_NODE = 99


def _read(device: int, asked_in: int, reply: Reply) -> tuple[Answer | None, Fault]:
    return Answer(asked_in, Status.SENT, examples=device), Fault.NONE


@pytest.fixture
def waiting() -> tuple[LateAnswers, _Waiting]:
    """Devices 0 and 1, at nodes 10 and 11, are late in round 3; their answers may be two rounds old."""
    exchanges = _Waiting()
    late = LateAnswers(exchanges, 2)  # type: ignore[arg-type]
    exchanges.awaited = {10, 11}
    assert late.note(0, 10, 3) and late.note(1, 11, 3) and not late.note(2, 12, 3)
    return late, exchanges


def test_an_answer_is_used_in_the_round_in_which_it_is_found(waiting: tuple[LateAnswers, _Waiting]) -> None:
    late, exchanges = waiting
    first = late.conclude(3, _read, np.zeros(3))
    assert first.waited_for == {0, 1} and not first.answers and not first.dropped
    assert late.busy(3, 4).tolist() == [True, True, False] and not late.busy(3, 3).any()
    exchanges.came = {10: REPLY}
    second = late.conclude(4, _read, np.zeros(3))
    assert second.used == {0: 1} and second.answers[0].round == 3 and not second.waited_for
    assert late.busy(3, 5).tolist() == [False, True, False]
    third = late.conclude(5, _read, np.zeros(3))
    assert third.dropped == {1} and exchanges.given_up == {11} and not third.used
    assert not late.busy(3, 6).any()


def test_an_answer_just_after_its_own_deadline_is_one_of_the_next_round(waiting: tuple[LateAnswers, _Waiting]) -> None:
    """It was found too late for its round, which is concluded without it: its age is 1, not 0."""
    late, exchanges = waiting
    exchanges.came = {10: REPLY}
    first = late.conclude(3, _read, np.zeros(3))
    assert first.waited_for == {0, 1} and not first.used
    assert late.busy(3, 4).tolist() == [False, True, False]  # it is free to be asked again
    assert late.conclude(4, _read, np.zeros(3)).used == {0: 1}


def test_what_is_wrong_with_a_late_answer_is_named(waiting: tuple[LateAnswers, _Waiting]) -> None:
    late, exchanges = waiting
    exchanges.came, faults = {10: REPLY}, np.zeros(3)
    late.conclude(3, _read, faults)
    found = late.conclude(4, lambda *arguments: (None, Fault.UNREADABLE), faults)
    assert faults.tolist() == [Fault.UNREADABLE, 0, 0] and not found.used


def test_a_device_that_comes_back_as_another_node_is_not_waited_for(waiting: tuple[LateAnswers, _Waiting]) -> None:
    late, exchanges = waiting
    late.update({0: OTHER_NODE})  # device 1 is not connected: it may come back as it was
    assert late.busy(3, 4).tolist() == [False, True, False] and exchanges.given_up == {10}


def test_an_answer_to_an_earlier_try_of_the_round_is_in_time(waiting: tuple[LateAnswers, _Waiting]) -> None:
    late, exchanges = waiting
    exchanges.came = {10: REPLY}
    late.update()
    assert late.asked_in(3) == [0, 1]  # neither is asked again
    assert late.of_this_round(3) == {0: REPLY} and late.asked_in(3) == [1]
    assert late.conclude(3, _read, np.zeros(3)).waited_for == {1}


class SlowGrid(LocalGrid):
    """Devices 0 and 1 need longer than the deadline for their first update."""

    def __init__(self, app: ClientApp, num_devices: int, seconds: float) -> None:
        super().__init__(app, num_devices)
        self._seconds, self.asked = seconds, list[int]()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        messages = list(messages)
        pushed = list(super().push_messages(messages))
        for name, message in zip(pushed, messages, strict=True):
            device = message.metadata.dst_node_id - 1_000
            if message.metadata.message_type == "train.update":
                if device < 2 and device not in self.asked:
                    reply = self._replies.pop(name)
                    threading.Timer(self._seconds, self._replies.__setitem__, (name, reply)).start()
                self.asked.append(device)
        return pushed


@pytest.mark.slow
def test_a_round_that_is_tried_again_takes_the_answers_to_its_first_try(tmp_path: Path) -> None:
    """All three are wanted: nobody who is late is asked twice, and nothing is lost."""
    order = tiny("learning.late_rounds=1", "learning.gradient_exchange=false", rounds=1)
    agreement = Agreement(order, HASTY.model_copy(update={"quorum": 1.0, "deadline_s": 2.0, "patience": 5}))
    with identity():
        grid = SlowGrid(app_of(lambda: agreement, tmp_path / "run" / DEVICES), 3, 3.0)
        UtilityFair(agreement, tmp_path / "run", "test").start(grid)
    (record,) = outcome(tmp_path / "run").records
    assert record["delivered"].all() and not record["late"].any() and not record["late_age"].any()
    assert grid.asked.count(0) == grid.asked.count(1) == 1 and not record["update_fault"].any()
    ((model, expected),) = simulated(order)
    assert close(model_of_round(tmp_path / "run", 1), model)
    assert np.allclose(record["deviation"], expected["deviation"], atol=1e-6)


def test_the_newest_counts_and_nobody_has_two_rows() -> None:
    """Devices 0 and 1 are in time, 1 and 2 have a late update too: that of 1 is dropped."""
    everybody = jnp.ones(3, bool)
    each = jnp.zeros(3)
    late = LateUpload(
        devices=jnp.array([1, 2, 3]),
        arrived=jnp.array([True, True, False]),
        age=jnp.array([1, 3, 0]),
        updates={"w": jnp.full((3, 2), 8.0)},
        reported_noise_std=each,
        reported_loss=each,
        num_samples=each,
        dropped=~everybody,
    )
    in_time = jnp.array([True, True, False])
    upload = Upload({"w": jnp.ones((3, 2))}, each, each, each, in_time, each, late)
    rows, use = arrivals(upload, Invitation(jnp.arange(3), everybody, ~in_time, everybody), 0.5)
    assert use is not None and rows.weight is not None
    found = {int(k): float(w) for k, w, there in zip(rows.devices, rows.weight, rows.arrived, strict=True) if there}
    assert found == pytest.approx({0: 1.0, 1: 1.0, 2: 0.5}) and use.age.tolist() == [0, 0, 3]
    assert sorted(rows.devices[rows.devices < 3].tolist()) == [0, 1, 2]


def test_what_the_access_point_does_with_late_answers_is_nothing_that_devices_agree_on() -> None:
    """So that a federation that began before there was such a thing goes on."""
    digests = {agreement_digest(tiny(*more).scenario, "proposed", "hardened") for more in ((), OFTEN_LATE[2:])}
    assert len(digests) == 1
    assert agreement_digest(tiny("learning.batch_size=8").scenario, "proposed", "hardened") not in digests


@pytest.mark.slow
def test_a_federation_that_drops_late_updates_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail."""
    monkeypatch.setattr(LateAnswers, "update", lambda self, nodes=None: None)
    with pytest.raises(AssertionError):
        test_every_round_is_the_simulators("paper", tmp_path)
