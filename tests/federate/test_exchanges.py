"""One node that announces a reply and never sends it holds up nobody else; one that is late can be waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.federate import connections
from fairwave.federate.answer_checks import Expected
from fairwave.federate.connections import Connections
from fairwave.federate.in_process import LocalGrid, identity
from fairwave.federate.messaging import MOST_STUCK_OF_NODE, Exchanges, Reply, read
from fairwave.runs.faults import Fault

DEADLINE_S = 0.6
HONEST, HALF_SENT, SILENT, SPOILED, SLOW = 1, 2, 3, 4, 5
HALF_SENT_TOO = 1_000
"""From this number on, all nodes are so."""
ANYTHING = Expected(0, 1, {}, 1.0)


@pytest.fixture(autouse=True)
def _inside_a_task() -> Iterator[None]:
    with identity():
        yield


class Wire(LocalGrid):
    """Answers of honest nodes are there at once; pulling that of a half-sent one blocks, as Flower's grid does."""

    def __init__(self) -> None:
        super().__init__(ClientApp(), 0)
        self.asked: list[int] = []
        self.uploaded, self.computed = threading.Event(), threading.Event()
        self._pushed: dict[str, Message] = {}

    @property
    def pushed(self) -> list[Message]:
        return list(self._pushed.values())

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
            if node >= HALF_SENT_TOO or node == HALF_SENT:
                self.uploaded.wait(30.0)
            if node != SILENT and (node != SLOW or self.computed.is_set()):
                found.append(Message(RecordDict(), reply_to=self._pushed[name]))
        return found


def ask(exchanges: Exchanges, *nodes: int, late_s: float = 0.0) -> dict[int, Reply]:
    return exchanges.exchange({node: RecordDict() for node in nodes}, "train.update", "0", DEADLINE_S, late_s)


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


def test_a_node_with_uploads_that_do_not_end_is_not_asked_for_ever_and_comes_back(wire: Wire) -> None:
    exchanges = Exchanges(wire)
    for _ in range(MOST_STUCK_OF_NODE + 2):
        assert set(ask(exchanges, HALF_SENT, HONEST, SILENT)) == {HONEST}
    assert wire.asked.count(HALF_SENT) == MOST_STUCK_OF_NODE
    # Nothing was announced by the silent one, so that it is asked every time.
    assert wire.asked.count(SILENT) == wire.asked.count(HONEST) == MOST_STUCK_OF_NODE + 2
    wire.uploaded.set()
    time.sleep(0.2)
    assert set(ask(exchanges, HALF_SENT, HONEST)) == {HALF_SENT, HONEST}


def test_a_wire_that_fails_is_told_to_whoever_waits(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*arguments: object) -> Iterable[Message]:
        raise ConnectionError("cut")

    monkeypatch.setattr(wire, "pull_messages", cut)
    monkeypatch.setattr(wire, "get_node_ids", cut)
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
    replies = ask(Exchanges(wire), SPOILED, HONEST)
    assert isinstance(replies[HONEST], Message)
    assert read(replies[SPOILED], ANYTHING) == (None, Fault.UNREADABLE)
    # Alone, it is not taken for the network's fault, which would end the federation.
    assert set(ask(Exchanges(wire), SPOILED)) == {SPOILED}


def test_everybody_who_has_answered_can_be_asked_at_once_again(wire: Wire) -> None:
    exchanges = Exchanges(wire)
    for _ in range(50):
        assert set(ask(exchanges, HONEST)) == {HONEST}


def test_a_late_reply_is_handed_over_once_and_its_node_is_not_asked_meanwhile(wire: Wire) -> None:
    exchanges = Exchanges(wire)
    assert set(ask(exchanges, SLOW, HONEST, late_s=30.0)) == {HONEST}
    assert exchanges.awaits(SLOW) and not exchanges.late_replies()
    assert set(ask(exchanges, SLOW, HONEST, late_s=30.0)) == {HONEST}
    assert wire.asked.count(SLOW) == 1
    wire.computed.set()
    exchanges.wait_for_late([SLOW], 1, time.monotonic() + 5.0)
    assert set(exchanges.late_replies()) == {SLOW} and not exchanges.late_replies()
    assert set(ask(exchanges, SLOW, HONEST, late_s=30.0)) == {SLOW, HONEST}


def test_a_late_reply_that_is_not_wanted_any_more_is_not_handed_over(wire: Wire) -> None:
    """Given up, or of an exchange whose replies die with the deadline."""
    exchanges = Exchanges(wire)
    assert not ask(exchanges, SLOW, late_s=30.0)
    exchanges.give_up([SLOW])
    assert not exchanges.awaits(SLOW)
    assert not ask(exchanges, HALF_SENT)
    wire.computed.set()
    wire.uploaded.set()
    time.sleep(0.5)
    assert not exchanges.late_replies()
    assert set(ask(exchanges, SLOW, HALF_SENT)) == {SLOW, HALF_SENT}


def test_the_message_lives_as_long_as_its_reply_is_wanted(wire: Wire) -> None:
    ask(Exchanges(wire), HONEST)
    ask(Exchanges(wire), HONEST, late_s=7.0)
    assert [message.metadata.ttl for message in wire.pushed] == pytest.approx([DEADLINE_S, DEADLINE_S + 7.0])


def test_nodes_that_come_again_under_new_numbers_leave_a_bounded_number_of_threads(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that half-sends its introduction, reconnects and does so again; who is known is asked all the same."""
    monkeypatch.setattr(connections, "MOST_STUCK", 3)
    lines: list[dict[str, object]] = []
    exchanges = Exchanges(wire)
    there = Connections(exchanges, 1, None, DEADLINE_S, lambda event, **more: lines.append({"event": event, **more}))
    for number in range(6):
        monkeypatch.setattr(wire, "get_node_ids", lambda number=number: [HALF_SENT_TOO + number])
        there.update()
    stuck = exchanges.stuck()
    assert [question.node for question in stuck] == [HALF_SENT_TOO + number for number in range(3)]
    (named,) = [line for line in lines if line["event"] == "too many uploads that do not end"]
    assert named["oldest_node"] == HALF_SENT_TOO and named["uploads"] == 3
    assert set(ask(exchanges, HONEST)) == {HONEST}
    wire.uploaded.set()
    time.sleep(0.5)
    assert not exchanges.stuck()
    there.update()
    assert wire.asked[-1] == HALF_SENT_TOO + 5
