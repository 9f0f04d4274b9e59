"""One exchange with some devices: a message to each, and what comes back before the deadline, or later."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fairwave.federate.answer_checks import Expected, fault_in
from fairwave.federate.flower_records import Unreadable, answer_from_records
from fairwave.federate.protocol import Answer, Reason
from fairwave.runs.faults import Fault

POLL_S = 0.2
MOST_PULLS_PER_S = 25.0
"""Requests that waiting may cost the SuperLink, however many devices are waited for."""
MOST_STUCK_OF_NODE = 3
"""Uploads of one node that do not end, beyond which it is not asked: a connection that breaks leaves one behind."""
MOST_STUCK = 64
"""Threads stuck in uploads that do not end, beyond which no node is asked that was never asked before."""
Reply: TypeAlias = Message | Exception
"""What came back: a message, or why Flower could not read it."""
_EXPIRED, _NO_REPLY, _GONE = 3, 4, 5
"""Flower's codes for what the network knows of a missing reply."""


class Question:
    """A message to one node, and the thread that waits for its reply."""

    def __init__(self, grid: Grid, node: int, message_id: str, pause_s: float) -> None:
        self.node, self.begun = node, time.monotonic()
        self.reply: Reply | None = None
        self._grid, self._message_id, self._pause_s = grid, message_id, pause_s
        self._given_up = threading.Event()

    def wait(self, end: float, arrived: queue.SimpleQueue[Question]) -> None:
        """Start to wait, until the reply is there or that time is over."""
        self._end = end
        self.thread = threading.Thread(target=self._pull, args=(arrived,), daemon=True)
        self.thread.start()

    def give_up(self) -> None:
        """Wait no longer; a thread that is inside of Flower stays there until that returns."""
        self._given_up.set()

    @property
    def is_awaited(self) -> bool:
        """Whether its reply is there and wanted, or still waited for."""
        wanted = not self._given_up.is_set()
        return wanted and (self.reply is not None or time.monotonic() < self._end + POLL_S)

    def _pull(self, arrived: queue.SimpleQueue[Question]) -> None:
        try:
            while not self._given_up.is_set():
                for reply in self._grid.pull_messages([self._message_id]):
                    if reply.metadata.reply_to_message_id == self._message_id:
                        self.reply = reply
                        return
                if time.monotonic() >= self._end:
                    return
                self._given_up.wait(max(0.0, min(self._pause_s, self._end - time.monotonic())))
        except Exception as error:  # whatever it is, whoever waits has to hear of it
            self.reply = error
        finally:
            if self.reply is not None:
                arrived.put(self)


class Exchanges:
    """Exchanges of a federation with its nodes, none of which can hold up another.

    Flower waits for a reply that was announced until all of it is there, or for hours. So every reply is pulled by a
    thread of its own, which is left behind at the deadline. A node that has left a few such threads behind is not asked
    until one of them ends: a slow or malicious uploader costs a few threads, and its own answers. Replies that may come
    late are waited for as long as the exchange says, and handed over by `late_replies`; their nodes are not asked
    meanwhile.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._left: list[Question] = []

    def exchange(
        self, contents: Mapping[int, RecordDict], message_type: str, group: str, deadline_s: float, late_s: float = 0.0
    ) -> dict[int, Reply]:
        """Replies by node. Messages and replies die with the deadline, or so many seconds after it."""
        busy = self._still_waiting()
        asked = {node: content for node, content in contents.items() if node not in busy}
        messages = [
            Message(content, dst_node_id=node, message_type=message_type, group_id=group, ttl=deadline_s + late_s)
            for node, content in asked.items()
        ]
        pushed = list(self.grid.push_messages(messages))
        end, arrived = time.monotonic() + deadline_s, queue.SimpleQueue[Question]()
        pause_s = max(POLL_S, len(pushed) / MOST_PULLS_PER_S)
        # An error made by the network has the network's own node as its source: only the question tells whose it is.
        questions = [
            Question(self.grid, node, message_id, pause_s)
            for message_id, node in zip(pushed, asked, strict=True)
            if message_id
        ]
        for question in questions:
            question.wait(end + late_s, arrived)
        replies = _collected(arrived, len(questions), end + POLL_S)
        left = [question for question in questions if question.node not in replies]
        self._left += left
        if not late_s:
            for question in left:
                question.give_up()
        self._check_wire(replies.values())
        return replies

    def late_replies(self) -> dict[int, Reply]:
        """What came, since it was last asked for, of the replies that were not there at their deadline."""
        came = {q.node: q.reply for q in self._left if q.reply is not None and q.is_awaited}
        self._left = [question for question in self._left if question.reply is None]
        return came

    def wait_for_late(self, nodes: Iterable[int], count: int, end: float) -> None:
        """Wait until late replies of so many of these nodes are there, or until that time."""
        wanted = set(nodes)
        while time.monotonic() < end:
            if len({question.node for question in self._left if question.reply is not None} & wanted) >= count:
                return
            time.sleep(min(POLL_S, max(0.0, end - time.monotonic())))

    def awaits(self, node: int) -> bool:
        """Whether a late reply of this node would still be taken."""
        return any(question.node == node and question.is_awaited for question in self._left)

    def give_up(self, nodes: Iterable[int]) -> None:
        """Wait for these nodes' late replies no longer."""
        given_up = set(nodes)
        for question in self._left:
            if question.node in given_up:
                question.give_up()

    def stuck(self) -> list[Question]:
        """The questions whose threads cannot end, because an announced reply is not there; the oldest first."""
        stuck = [question for question in self._left if question.thread.is_alive() and not question.is_awaited]
        return sorted(stuck, key=lambda question: question.begun)

    def _still_waiting(self) -> set[int]:
        """Nodes whose last reply is not there and may come; one that has just been given up is waited for shortly."""
        end = time.monotonic() + POLL_S
        for question in self._left:
            if not question.is_awaited:
                question.thread.join(max(0.0, end - time.monotonic()))
        self._left = [question for question in self._left if question.thread.is_alive() or question.is_awaited]
        alive = [question for question in self._left if question.thread.is_alive()]
        awaited, stuck = {q.node for q in alive if q.is_awaited}, Counter(question.node for question in alive)
        return awaited | {node for node, count in stuck.items() if count >= MOST_STUCK_OF_NODE}

    def _check_wire(self, replies: Iterable[Reply]) -> None:
        """Raise why no reply could be pulled, if nothing else can be asked of the network either.

        Otherwise it is the fault of the nodes: Flower cannot read what they sent.
        """
        failed = [reply for reply in replies if isinstance(reply, Exception)]
        if not failed or len(failed) < len(list(replies)):
            return
        try:
            self.grid.get_node_ids()
        except Exception:
            raise failed[0] from None


def _collected(arrived: queue.SimpleQueue[Question], count: int, end: float) -> dict[int, Reply]:
    """The replies that arrive in time."""
    replies: dict[int, Reply] = {}
    while len(replies) < count:
        try:
            question = arrived.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        if question.reply is not None:
            replies[question.node] = question.reply
    return replies


def failure(reply: Message) -> str:
    """Why a device failed: the word that it says, or Flower's code; never an exception's text, which may hold data."""
    if reply.has_error():
        return f"flower_error_{int(reply.error.code)}"
    try:
        return str(answer_from_records(reply.content).reason)
    except Unreadable:
        return str(Reason.UNREADABLE)


def read(reply: Reply | None, expected: Expected) -> tuple[Answer | None, Fault]:
    """An answer that can be used, or why there is none."""
    if reply is None:
        return None, Fault.NO_ANSWER
    if isinstance(reply, Exception):
        return None, Fault.UNREADABLE
    if reply.has_error():
        code = reply.error.code
        gone = {_EXPIRED: Fault.NO_ANSWER, _NO_REPLY: Fault.NO_ANSWER, _GONE: Fault.DISCONNECTED}
        return None, gone.get(code, Fault.FAILED)
    try:
        answer = answer_from_records(reply.content)
    except Unreadable:
        return None, Fault.UNREADABLE
    fault = fault_in(answer, expected)
    return (answer, fault) if fault is Fault.NONE else (None, fault)
