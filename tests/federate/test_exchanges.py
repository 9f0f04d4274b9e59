"""One node that announces a reply and never sends it holds up nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.federate.in_process import LocalGrid, identity
from fairwave.federate.messaging import Exchanges

DEADLINE_S = 0.6
HONEST, HALF_SENT, SILENT, SPOILED = 1, 2, 3, 4


@pytest.fixture(autouse=True)
def _inside_a_task() -> Iterator[None]:
    with identity():
        yield


class Wire(LocalGrid):
    """Answers of honest nodes are there at once; pulling that of a half-sent one blocks, as Flower's grid does."""

    def __init__(self) -> None:
        super().__init__(ClientApp(), 0)
        self.asked: list[int] = []
        self.uploaded = threading.Event()
        self._pushed: dict[str, Message] = {}

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        pushed = []
        for message in messages:
            name = f"{len(self._pushed)}"
            message.metadata.__dict__["_message_id"] = name
            self._pushed[name] = message
            self.asked.append(message.metadata.dst_node_id)
            pushed.append(name)
        return pushed

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        found = []
        for name in message_ids:
            node = self._pushed[name].metadata.dst_node_id
            if node == HALF_SENT:
                self.uploaded.wait(30.0)
            if node != SILENT:
                found.append(Message(RecordDict(), reply_to=self._pushed[name]))
        return found


def ask(exchanges: Exchanges, *nodes: int) -> dict[int, Message]:
    return exchanges.exchange({node: RecordDict() for node in nodes}, "train.update", "0", DEADLINE_S)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.uploaded.set()


def test_honest_answers_arrive_and_the_deadline_holds(wire: Wire) -> None:
    begun = time.monotonic()
    replies = ask(Exchanges(wire), HALF_SENT, HONEST, SILENT)
    assert set(replies) == {HONEST}
    assert time.monotonic() - begun < DEADLINE_S + 5.0  # the blocked pull takes 30 s


def test_a_node_that_still_uploads_is_not_asked_and_comes_back(wire: Wire) -> None:
    exchanges = Exchanges(wire)
    for _ in range(3):
        assert set(ask(exchanges, HALF_SENT, HONEST, SILENT)) == {HONEST}
    assert wire.asked.count(HALF_SENT) == 1 and wire.asked.count(HONEST) == 3
    assert wire.asked.count(SILENT) == 3  # nothing was announced, so that it is asked every time
    wire.uploaded.set()
    time.sleep(0.2)
    assert set(ask(exchanges, HALF_SENT, HONEST)) == {HALF_SENT, HONEST}


def test_a_wire_that_fails_is_told_to_whoever_waits(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(message_ids: Iterable[str]) -> Iterable[Message]:
        raise ConnectionError("cut")

    monkeypatch.setattr(wire, "pull_messages", cut)
    with pytest.raises(ConnectionError, match="cut"):
        ask(Exchanges(wire), HONEST)


def test_a_reply_that_flower_cannot_read_costs_its_own_node_alone(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    pull = wire.pull_messages

    def spoiled(message_ids: Iterable[str]) -> Iterable[Message]:
        (name,) = message_ids
        if wire.asked[int(name)] == SPOILED:
            raise ValueError("an object that cannot be inflated")
        return pull([name])

    monkeypatch.setattr(wire, "pull_messages", spoiled)
    assert set(ask(Exchanges(wire), SPOILED, HONEST)) == {HONEST}


def test_everybody_who_has_answered_can_be_asked_at_once_again(wire: Wire) -> None:
    exchanges = Exchanges(wire)
    for _ in range(50):
        assert set(ask(exchanges, HONEST)) == {HONEST}
