"""One exchange with some devices: a message to each, and what comes back before the deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fairwave.federate.answer_checks import Expected, fault_in
from fairwave.federate.flower_records import Unreadable, answer_from_records
from fairwave.federate.protocol import Answer, Reason
from fairwave.runs.faults import Fault

POLL_S = 0.2
_EXPIRED, _NO_REPLY, _GONE = 3, 4, 5
"""Flower's codes for what the network knows of a missing reply."""


def exchange(
    grid: Grid, contents: Mapping[int, RecordDict], message_type: str, group: str, deadline_s: float
) -> dict[int, Message]:
    """Replies by node. Messages and replies die with the deadline, so that none is ever met in a later round."""
    messages = [
        Message(content, dst_node_id=node, message_type=message_type, group_id=group, ttl=deadline_s)
        for node, content in contents.items()
    ]
    pushed = list(grid.push_messages(messages))
    # An error made by the network has the network's own node as its source: only the question tells whose it is.
    owner = {asked: node for asked, node in zip(pushed, contents, strict=True) if asked}
    replies: dict[int, Message] = {}
    waiting, end = set(owner), time.monotonic() + deadline_s
    while waiting:
        for reply in grid.pull_messages(list(waiting)):
            asked = reply.metadata.reply_to_message_id
            if asked in waiting:
                waiting.discard(asked)
                replies[owner[asked]] = reply
        if not waiting or time.monotonic() >= end:
            break
        time.sleep(POLL_S)
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
