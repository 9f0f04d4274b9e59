"""A federation within one process: the real strategy and the real devices, without sockets and without Ray."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.server_run import OnLogLine
from fairwave.federate.strategy import UtilityFair
from fairwave.runs.folder import DEVICES

_RAISED = 2
_FIRST_NODE = 1_000


class LocalGrid(Grid):
    """Answers every message at once, by calling the device's app."""

    def __init__(self, app: ClientApp, num_devices: int) -> None:
        self._app, self._replies = app, dict[str, Message]()
        self._contexts = {_FIRST_NODE + k: _context(k, num_devices) for k in range(num_devices)}
        self._sent = 0

    def get_node_ids(self) -> Iterable[int]:
        """All nodes; one number apart from the devices', so that nobody mistakes the one for the other."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver messages; an error in the app becomes an error reply, as in a deployment."""
        pushed = []
        for message in messages:
            self._sent += 1
            name = str(self._sent)
            message.metadata.__dict__["_message_id"] = name
            try:
                reply = self._app(message, self._contexts[message.metadata.dst_node_id])
            except Exception as error:
                reply = Message(Error(_RAISED, str(error)), reply_to=message)
            self._replies[name] = reply
            pushed.append(name)
        return pushed

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies to these messages."""
        return [self._replies.pop(name) for name in list(message_ids) if name in self._replies]

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A message, as Flower's older interface makes it."""
        return Message(content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id, ttl=ttl)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Both in one."""
        return self.pull_messages(self.push_messages(messages))

    def set_run(self, run: object) -> None:
        """There is one run only."""

    @property
    def run(self) -> Any:
        """There is none to tell of."""
        raise NotImplementedError


@contextlib.contextmanager
def identity() -> Iterator[None]:
    """Flower makes messages only inside a task; this process is one while it federates with itself."""
    kept = TaskIdentity._task_id, TaskIdentity._run_id, TaskIdentity._node_id
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
    try:
        yield
    finally:
        TaskIdentity._task_id, TaskIdentity._run_id, TaskIdentity._node_id = kept


def federate_in_process(
    agreement: Agreement,
    folder: Path,
    command: str = "",
    on_line: OnLogLine = lambda line: None,
    app: ClientApp | None = None,
) -> None:
    """Run an agreement into a folder; `app` replaces the devices' own."""
    devices = app_of(lambda: agreement, folder / DEVICES) if app is None else app
    with identity():
        grid = LocalGrid(devices, agreement.order.scenario.cell.num_devices)
        UtilityFair(agreement, folder, command, on_line=on_line).start(grid)


def _context(device: int, num_devices: int) -> Context:
    return Context(
        run_id=1,
        node_id=_FIRST_NODE + device,
        node_config={"partition-id": device, "num-partitions": num_devices},
        state=RecordDict(),
        run_config={},
    )
