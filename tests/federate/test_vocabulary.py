"""Nothing but the agreed words and numbers leaves a device, whatever fails on it.

Every failure below quotes a record, as libraries do in their messages; then everything that crossed the wire, and all
that the access point wrote, is searched for it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from fairwave.engine.round_record import FINDING, FROM_PLAN
from fairwave.engine.server_steps import NOT_FINITE
from fairwave.errors import FederationError, ScenarioError
from fairwave.federate import answering, client, client_state
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.flower_records import ANSWER, HELLO, TASK, answer_from_records
from fairwave.federate.in_process import federate_in_process
from fairwave.federate.protocol import TELEMETRY, VERSION, Answer, Reason, Status, sayable
from fairwave.federate.settings import Settings
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from tests.federate.parties import REPEATABLE, Meddled, federated, tiny

NUMBER = "4711-0815-1701"  # so long that no time stamp or random number has it by chance
SECRET = f"patient {NUMBER}, viral load 0.25"
pytestmark = pytest.mark.faults


class Tapped:
    """Hands every message on, and keeps all that devices said."""

    def __init__(self) -> None:
        self.replies: list[Message] = []

    def __call__(self, honest: ClientApp, message: Message, context: Context) -> Message:
        try:
            reply = honest(message, context)
        except Exception as error:
            pytest.fail(f"an exception would have been forwarded by Flower: {error}")
        self.replies.append(reply)
        return reply

    def said(self) -> Iterator[bytes]:
        """Every byte that devices sent: names and values of records, and arrays."""
        for reply in self.replies:
            assert not reply.has_error()
            for name, record in reply.content.items():
                yield name.encode()
                if isinstance(record, ArrayRecord):
                    yield from (key.encode() + array.data for key, array in record.items())
                else:
                    yield repr(dict(record)).encode()


def _quote(*rest: object, **options: object) -> object:
    raise ValueError(SECRET)


def _quote_in_our_words(*rest: object, **options: object) -> object:
    raise ScenarioError(f"data: the record {SECRET} is odd; mend it")


def _quote_as_a_file(*rest: object, **options: object) -> object:
    raise OSError(28, "No space left on device", SECRET)


FAILURES = {
    "training": (client, "_train", SimpleNamespace(lower=_quote)),
    "the gradient": (client, "_gradient", _quote),
    "the plan": (client, "_prepare", _quote),
    "the loss": (client, "_loss", _quote),
    "building the device": (answering, "device_client", _quote),
    "loading data, in our words": (answering, "load_for", _quote_in_our_words),
    "loading data, in another library's": (answering, "load_for", _quote),
    "a full disk": (client_state, "replace_file", _quote_as_a_file),
    "reading the state": (client_state.ClientStateFile, "read", _quote_in_our_words),
    "writing the answer": (answering, "answer_to_records", _quote),
    "reading the task": (answering, "task_from_records", _quote),
}
REASONS = {
    "loading data, in our words": Reason.DATA,
    "a full disk": Reason.STATE,
    "reading the state": Reason.STATE,
}


@pytest.mark.parametrize("where", FAILURES)
def test_a_failure_says_one_word(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, fails = FAILURES[where]
    if where == "writing the answer":  # the first attempt fails, the word that replaces it does not
        honest = answering.answer_to_records

        def fails(answer: Answer) -> object:
            return honest(answer) if answer.status is Status.FAILED else _quote()

    monkeypatch.setattr(owner, name, fails)
    tapped, settings = Tapped(), REPEATABLE.model_copy(update={"patience": 1})
    agreement = Agreement(tiny(rounds=1), settings)
    app = Meddled(app_of(lambda: agreement, tmp_path / "run" / "devices"), tapped)
    with pytest.raises(FederationError, match="failed from device"):
        federate_in_process(agreement, tmp_path / "run", "test", app=app)
    assert tapped.replies
    assert not any(SECRET.encode() in said or NUMBER.encode() in said for said in tapped.said())
    failed = [answer_from_records(reply.content) for reply in tapped.replies if ANSWER in reply.content]
    words = {answer.reason for answer in failed if answer.status is Status.FAILED}
    assert words == {REASONS.get(where, Reason.INTERNAL)}
    at_the_access_point = [path for path in (tmp_path / "run").iterdir() if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in at_the_access_point)
    logs = [path.read_text("utf-8") for path in (tmp_path / "run" / "devices").rglob("device.log")]
    assert any(SECRET in log for log in logs)  # its owner can read what happened


def test_a_broken_row_of_a_table_stays_on_the_device_and_does_not_stop_it(tmp_path: Path) -> None:
    """That a device cannot read one record would tell of that record, whatever the message says."""
    draw = np.random.default_rng(0)
    for name in ("ap", "0", "1", "2"):
        (tmp_path / name).mkdir()
        for part, count in (("train.csv", 80), ("test.csv", 40)):
            rows = [",".join(map(str, [*np.round(draw.random(4), 3), int(draw.integers(0, 2))])) for _ in range(count)]
            if (name, part) == ("2", "train.csv"):
                rows[33] = '47.0,"SECRET RECORD TEXT",1'
            (tmp_path / name / part).write_text("age,viral_load,cd4,dose,label\n" + "\n".join(rows) + "\n")
    scenario = load_scenario(
        "fair-mlp",
        [
            *("cell.num_devices=3", f"data.source={tmp_path / 'ap'}", "data.partition={law='own'}"),
            *("data.samples_per_device=60", "learning.model=softmax", "learning.layer_sizes=[4,2]"),
            *("learning.batch_size=16", "compute.bits_per_iteration=800e3", "privacy.noise_source=hardened"),
            "defences.use=[]",
        ],
    )
    settings = Settings(energy="model", quorum=0.5, patience=1)
    tapped = Tapped()

    def brings(honest: ClientApp, message: Message, context: Context) -> Message:
        own = {**context.node_config, "data": str(tmp_path / str(context.node_config["partition-id"]))}
        return tapped(honest, message, Context(1, context.node_id, own, context.state, {}))

    found = federated(Order(scenario, ("proposed",), (0,), 1), tmp_path / "run", settings, brings)
    assert found.records[0]["delivered"].all() and not found.records[0][FINDING + NOT_FINITE].any()
    log = (tmp_path / "run" / "federation.jsonl").read_text("utf-8")
    assert "device error" not in log and "SECRET" not in log
    assert not any(b"SECRET" in said for said in tapped.said())


def _line(log: str, event: str) -> dict[str, object]:
    return next(line for line in map(json.loads, log.splitlines()) if line["event"] == event)


def test_texts_of_exceptions_are_not_logged_even_where_they_arrive(tmp_path: Path) -> None:
    """A device of another make may let an exception through: the access point writes down its code alone."""

    def careless(honest: ClientApp, message: Message, context: Context) -> Message:
        if message.metadata.message_type.startswith("train"):
            raise RuntimeError(SECRET)
        return honest(message, context)

    with pytest.raises(FederationError):
        federated(tiny(rounds=1), tmp_path / "run", Settings(quorum=0.3, wait_s=1.0, patience=1), careless)
    log = (tmp_path / "run" / "federation.jsonl").read_text("utf-8")
    assert SECRET not in log
    assert _line(log, "device error")["why"] == "flower_error_2"


def test_an_introduction_that_fails_says_nothing_of_the_device(tmp_path: Path) -> None:
    tapped, key = Tapped(), tmp_path / SECRET

    def without_key(honest: ClientApp, message: Message, context: Context) -> Message:
        own = {**context.node_config, "key": str(key)}
        return tapped(honest, message, Context(1, context.node_id, own, context.state, {}))

    federated(tiny(rounds=1), tmp_path / "run", meddle=without_key)
    hello = next(reply for reply in tapped.replies if HELLO in reply.content)
    assert dict(hello.content[HELLO])["signature"] == b""
    assert not any(SECRET.encode() in said for said in tapped.said())


@pytest.mark.parametrize("records", [{}, {TASK: ConfigRecord({"version": VERSION})}, {TASK: ConfigRecord({})}])
def test_a_task_that_cannot_be_read_is_answered_with_a_word(records: dict[str, ConfigRecord], tmp_path: Path) -> None:
    tapped = Tapped()

    def garbles(honest: ClientApp, message: Message, context: Context) -> Message:
        if message.metadata.message_type.startswith("train"):
            for name in list(message.content):
                del message.content[name]
            for name, record in records.items():
                message.content[name] = record
        return tapped(honest, message, context)

    with pytest.raises(FederationError):
        federated(tiny(rounds=1), tmp_path / "run", REPEATABLE.model_copy(update={"patience": 1}), garbles)
    answers = [answer_from_records(reply.content) for reply in tapped.replies if ANSWER in reply.content]
    assert {answer.reason for answer in answers} == {Reason.UNREADABLE}


LIKE = {"w": np.zeros(3, np.float32)}
GOOD = Answer(1, Status.SENT, np.ones(3, np.float32), 60, telemetry={"energy_j": 0.5})


@pytest.mark.parametrize(
    "change",
    [
        {"values": np.ones(4, np.float32)},
        {"values": np.ones((3, 1), np.float32)},
        {"values": np.ones(3)},
        {"values": {SECRET: np.ones(3, np.float32)}},
        {"telemetry": {SECRET: 0.5}},
        {"telemetry": {"energy_j": SECRET}},
        {"examples": SECRET},
        {"spent": 2**63},
        {"spent": -1},
        {"state_name": 2**63},
        {"round": 1.5},
        {"reported_loss": float("inf")},
        {"reported_noise_std": float("nan")},
        {"status": SECRET},
        {"reason": SECRET},
        {"exhausted": 2},
    ],
)
def test_the_vocabulary_has_no_room_for_anything_else(change: dict[str, object]) -> None:
    assert sayable(GOOD, LIKE)
    assert not sayable(dataclasses.replace(GOOD, **change), LIKE)


def test_plans_can_be_told() -> None:
    assert set(FROM_PLAN) <= set(TELEMETRY)


def test_an_answer_outside_the_vocabulary_is_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.DeviceClient, "_telemetry", lambda self, reported: {SECRET: 1.0})
    tapped = Tapped()
    with pytest.raises(FederationError):
        federated(tiny(rounds=1), tmp_path / "run", REPEATABLE.model_copy(update={"patience": 1}), tapped)
    assert not any(SECRET.encode() in said for said in tapped.said())
