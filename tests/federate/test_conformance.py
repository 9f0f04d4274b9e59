"""The conformance check passes the client of fairwave, and finds each rule that a changed one breaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fairwave.errors import ArgumentError
from fairwave.federate.agreement import Agreement
from fairwave.federate.answering import HELLO_TYPE, Answering
from fairwave.federate.conformance import Conformance
from fairwave.federate.conformance_network import port_of
from fairwave.federate.credentials import make_device_key
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.flower_records import ANSWER, ARRAYS, FLAT, HELLO, TASK
from fairwave.federate.node import Node
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny

Change = Callable[[str, RecordDict, RecordDict], RecordDict | None]
"""Given a message's type, its content and the honest reply, what the client says instead."""


def _honest(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    return reply


def _broken(folder: Path, change: Change, *overrides: str, preset: str = "small") -> list[str]:
    """The rules that a client breaks."""
    order = tiny('data.partition={law="own"}', "cell.num_devices=1", *overrides, preset=preset, rounds=2)
    agreement = Agreement(order, Settings(energy="model"))
    (folder / "known_keys").mkdir()
    make_device_key(folder / "node.key", folder / "known_keys" / "0.pub")
    node = Node(0, folder / "home", folder / "node.key", "mnist", folder / "account", None)
    answering = Answering(lambda: agreement)

    def ask(kind: str, content: RecordDict) -> RecordDict | None:
        replied = answering.introduction if kind == HELLO_TYPE else answering.answer
        return change(kind, content, replied(content, lambda: node))

    keys = KnownKeys(folder / "known_keys")
    return [check.rule for check in Conformance(agreement, 0, keys, ask).run() if check.broken]


def test_the_client_of_fairwave_keeps_every_rule(tmp_path: Path) -> None:
    assert _broken(tmp_path, _honest) == []


@pytest.mark.slow
def test_with_private_training_and_one_exchange_too(tmp_path: Path) -> None:
    hardened = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset")
    assert _broken(tmp_path, _honest, *hardened, preset="fair-mlp") == []


def _no_signature(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    if HELLO in reply:
        reply[HELLO] = ConfigRecord({**reply[HELLO], "signature": b"mine"})
    return reply


def _new_noise(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    if ARRAYS in reply:
        flat = reply[ARRAYS][FLAT].numpy()
        reply[ARRAYS] = ArrayRecord({FLAT: Array(flat + np.random.default_rng().normal(size=flat.size).astype("f4"))})
    return reply


def _never_stale(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    if ANSWER in reply and reply[ANSWER]["status"] == "stale":
        reply[ANSWER] = ConfigRecord({**reply[ANSWER], "status": "resting"})
    return reply


def _trusting(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    if ANSWER in reply and reply[ANSWER]["reason"] != "none":
        reply[ANSWER] = ConfigRecord({**reply[ANSWER], "status": "sent", "reason": "none"})
    return reply


def _talkative(kind: str, asked: RecordDict, reply: RecordDict) -> RecordDict:
    if TASK in asked:
        reply["notes"] = MetricRecord({"mean of the records": 0.5})
    return reply


def _silent(kind: str, asked: RecordDict, reply: RecordDict) -> None:
    return None


@pytest.mark.parametrize(
    ("change", "fewest", "rule"),
    [
        (_no_signature, 1, "signs a question"),
        (_new_noise, 2, "the same bits"),
        (_never_stale, 2, "not entered"),
        (_trusting, 9, "refused"),
        (_talkative, 10, "the next round is answered"),
        (_silent, 15, "introduces itself"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, change: Change, fewest: int, rule: str) -> None:
    broken = _broken(tmp_path, change)
    assert len(broken) >= fewest
    assert any(rule in each for each in broken)


@pytest.mark.parametrize("endpoint", ["0.0.0.0:8443", "ap.example.org:8443", "127.0.0.1", "127.0.0.1:0", "8443"])
def test_a_check_listens_on_this_machine_only(endpoint: str) -> None:
    with pytest.raises(ArgumentError, match="loopback"):
        port_of(endpoint)
