"""What a device replies to a message, whatever carried it: the content of the reply for the content of the message.

Flower sends the text of an exception to the access point. So no function here lets one through: whatever goes wrong is
one word on the wire, and in full in the device's own log.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from fairwave.data.sources import load_for
from fairwave.errors import FairwaveError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client import DeviceClient, TrainingPrograms
from fairwave.federate.device_keys import sign
from fairwave.federate.device_log import note
from fairwave.federate.flower_records import HELLO, Unreadable, answer_to_records, task_from_records, value
from fairwave.federate.node import Node, Refused
from fairwave.federate.protocol import VERSION, Answer, Reason, Status, Task, sayable_round
from fairwave.federate.setup import device_client
from fairwave.runs.order import Track
from fairwave.scenario.partition_laws import Own

HELLO_TYPE = "query.hello"
MOST_CLIENTS = 4
"""Clients that one device keeps in memory: an access point that invents federations must not fill it."""
_CACHE = "compiled"
_NAME = re.compile("[0-9a-f]{16}")
# Noise from the operating system is drawn in calls from a compiled program to the host. Programs of several devices of
# a process that wait for such calls can take all of XLA's threads and wait for ever.
_ONE_COMPUTES = threading.Lock()


class Answering:
    """Answers messages for the devices of one program: one in a deployment, all of them in one process."""

    def __init__(
        self, agreement: Callable[[], Agreement], home: Path | None = None, *, keeps_programs: bool = False
    ) -> None:
        """`home` serves nodes that have none of their own; `keeps_programs` keeps compiled programs in their homes."""
        self._agreement, self._home, self._keeps_programs = agreement, home, keeps_programs
        self._clients = OrderedDict[tuple[str, str, int, int], DeviceClient]()
        self._load, self._programs = functools.cache(load_for), TrainingPrograms()

    def introduction(self, content: RecordDict, node_of: Callable[[], Node]) -> RecordDict:
        """Say which device this is, and prove it where there is a key."""
        introduction: dict[str, Any] = {"version": VERSION, "partition-id": -1, "signature": b""}
        try:
            node, asked = node_of(), content[HELLO]
            introduction["partition-id"] = node.device
            if node.key is not None and isinstance(asked, ConfigRecord):
                introduction["signature"] = sign(node.key, node.device, value(asked, "question", bytes))
        except Exception as error:
            if self._home is not None:
                note(self._home, "failed to introduce itself", error)
        return RecordDict({HELLO: ConfigRecord(introduction)})

    def answer(self, content: RecordDict, node_of: Callable[[], Node]) -> RecordDict:
        """Do what is asked; whatever fails is answered with one word."""
        folder, number = self._home, 0
        try:
            node = node_of()
            folder = node.folder
            if self._keeps_programs:
                _keep_programs(node.home / _CACHE)
            with _reason(Reason.UNREADABLE):
                task = task_from_records(content)
            number = sayable_round(task.round)
            with _ONE_COMPUTES:
                client = self._client(task, node)
                with _reason(Reason.STATE):
                    answer = client.answer(task)
            return answer_to_records(answer)
        except Exception as error:  # its text may quote data: it must not travel to the access point
            reason = error.reason if isinstance(error, Refused) else Reason.INTERNAL
            if folder is not None:
                note(folder, f"failed: {reason}", error)
            return answer_to_records(Answer(number, Status.FAILED, reason=reason))

    def _client(self, task: Task, node: Node) -> DeviceClient:
        which = (task.federation, task.scheme, task.seed, node.device)
        if which not in self._clients:
            agreed = self._agreement()
            _check(task, agreed, node)
            with _reason(Reason.DATA):
                self._clients[which] = device_client(
                    agreed.order,
                    agreed.settings,
                    Track(task.scheme, task.seed),
                    node.device,
                    self._load(agreed.order.scenario.data, node.data),
                    node.folder / task.federation / f"{task.scheme}-{task.seed}.state",
                    account=node.account,
                    own_budget=node.budget,
                    programs=self._programs,
                )
            own = [each for each in self._clients if each[-1] == node.device]
            for oldest in own[:-MOST_CLIENTS]:
                del self._clients[oldest]
        return self._clients[which]


def _check(task: Task, agreed: Agreement, node: Node) -> None:
    """Refuse what was not agreed on, before its name becomes that of a file."""
    if not _NAME.fullmatch(task.federation) or Track(task.scheme, task.seed) not in list(agreed.order.tracks()):
        raise Refused(Reason.OTHER_AGREEMENT, "the task is of another federation, scheme or seed than was agreed")
    if isinstance(agreed.order.scenario.data.partition, Own) and node.data is None:
        raise Refused(
            Reason.CONFIGURATION, "node-config: no 'data', and data.partition says that devices bring their own"
        )


@contextlib.contextmanager
def _reason(reason: Reason) -> Iterator[None]:
    """Give errors of our own, of files and of messages the word by which they are reported."""
    try:
        yield
    except (FairwaveError, OSError, Unreadable) as error:
        raise Refused(reason, str(error)) from error


def _keep_programs(folder: Path) -> None:
    """Without this, every start of the program would compile everything again."""
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
