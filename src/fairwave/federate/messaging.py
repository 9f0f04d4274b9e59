"""One exchange with some devices: a message to each, and what comes back before the deadline."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from typing import TypeAlias

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fairwave.federate.answer_checks import Expected, fault_in
from fairwave.federate.flower_records import Unreadable, answer_from_records
from fairwave.federate.protocol import Answer, Reason
from fairwave.runs.faults import Fault

POLL_S = 0.2
MOST_PULLS_PER_S = 50.0
"""Requests that waiting may cost the SuperLink, however many devices are waited for."""
Arrival: TypeAlias = tuple[int, Message | Exception]
"""A node, and its reply or why it could not be pulled."""
_EXPIRED, _NO_REPLY, _GONE = 3, 4, 5
"""Flower's codes for what the network knows of a missing reply."""


class Exchanges:
    """Exchanges of a federation with its nodes, none of which can hold up another.

    Flower waits for a reply that was announced until all of it is there, or for hours. So every reply is pulled by a
    thread of its own, which is left behind at the deadline. A node is not asked while such a thread still waits for its
    last reply: a slow or malicious uploader costs one thread, and its own answers.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._pulling: dict[int, threading.Thread] = {}

    def exchange(
        self, contents: Mapping[int, RecordDict], message_type: str, group: str, deadline_s: float
    ) -> dict[int, Message]:
        """Replies by node. Messages and replies die with the deadline, so that none is ever met in a later round."""
        busy = self._still_uploading()
        asked = {node: content for node, content in contents.items() if node not in busy}
        messages = [
            Message(content, dst_node_id=node, message_type=message_type, group_id=group, ttl=deadline_s)
            for node, content in asked.items()
        ]
        pushed = list(self.grid.push_messages(messages))
        end, arrived = time.monotonic() + deadline_s, queue.SimpleQueue[Arrival]()
        pause_s = max(POLL_S, len(pushed) / MOST_PULLS_PER_S)
        # An error made by the network has the network's own node as its source: only the question tells whose it is.
        for message_id, node in zip(pushed, asked, strict=True):
            if message_id:
                arguments = (self.grid, message_id, node, end, pause_s, arrived)
                self._pulling[node] = threading.Thread(target=_pull, args=arguments, daemon=True)
                self._pulling[node].start()
        replies = _collected(arrived, sum(map(bool, pushed)), end + POLL_S)
        for node in replies:
            del self._pulling[node]
        return replies

    def _still_uploading(self) -> set[int]:
        """Nodes whose last reply is announced and not there; one that has just been given up is waited for shortly."""
        end = time.monotonic() + POLL_S
        for thread in self._pulling.values():
            thread.join(max(0.0, end - time.monotonic()))
        self._pulling = {node: thread for node, thread in self._pulling.items() if thread.is_alive()}
        return set(self._pulling)


def _pull(
    grid: Grid, message_id: str, node: int, end: float, pause_s: float, arrived: queue.SimpleQueue[Arrival]
) -> None:
    """Wait for the reply to one message, until it is there or the deadline is over."""
    try:
        while True:
            for reply in grid.pull_messages([message_id]):
                if reply.metadata.reply_to_message_id == message_id:
                    arrived.put((node, reply))
                    return
            if time.monotonic() >= end:
                return
            time.sleep(max(0.0, min(pause_s, end - time.monotonic())))
    except Exception as error:  # whatever it is, whoever waits has to hear of it
        arrived.put((node, error))


def _collected(arrived: queue.SimpleQueue[Arrival], count: int, end: float) -> dict[int, Message]:
    """The replies that arrive in time.

    A reply that cannot be pulled, because Flower cannot read it, is its node's fault. If none can, it is the network's,
    and is raised.
    """
    replies: dict[int, Message] = {}
    failed: list[Exception] = []
    while len(replies) + len(failed) < count:
        try:
            node, reply = arrived.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(reply, Exception):
            failed.append(reply)
        else:
            replies[node] = reply
    if failed and len(failed) == count:
        raise failed[0]
    return replies


def failure(reply: Message) -> str:
    """Why a device failed: the word that it says, or Flower's code; never an exception's text, which may hold data."""
    if reply.has_error():
        return f"flower_error_{int(reply.error.code)}"
    try:
        return str(answer_from_records(reply.content).reason)
    except Unreadable:
        return str(Reason.UNREADABLE)


def read(reply: Message | None, expected: Expected) -> tuple[Answer | None, Fault]:
    """An answer that can be used, or why there is none."""
    if reply is None:
        return None, Fault.NO_ANSWER
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
