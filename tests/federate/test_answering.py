"""Devices that share a process: one computes at a time, the others wait."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from flwr.app import RecordDict

from fairwave.federate import answering
from fairwave.federate.agreement import Agreement
from fairwave.federate.answering import Answering
from fairwave.federate.flower_records import answer_from_records, task_to_records
from fairwave.federate.node import Node
from fairwave.federate.protocol import Answer, Phase, Status, Task
from fairwave.federate.settings import Settings
from tests.federate.parties import TRACK, tiny


def _task() -> RecordDict:
    copy = np.zeros(7_850, np.float32)
    return task_to_records(Task("0" * 16, *TRACK, bytes(16), 0, Phase.UPDATE, 0.0, -1, -1, copy, None))


def test_devices_of_one_process_compute_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten resident devices in two processes hung in their third round: programs with calls to the host had taken all
    threads of XLA. Devices of different agreements share a process too."""
    at_work, most = 0, 0

    class Slow:
        def answer(self, task: Task) -> Answer:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            time.sleep(0.05)
            at_work -= 1
            return Answer(task.round, Status.RESTING)

    monkeypatch.setattr(answering, "device_client", lambda *rest, **named: Slow())
    agreements = [Agreement(tiny(preset=preset), Settings()) for preset in ("small", "paper-clean")]
    answerings = [Answering(lambda agreed=agreed: agreed) for agreed in agreements]
    replies: list[RecordDict] = []

    def ask(device: int) -> None:
        node = Node(device, tmp_path / str(device), None, None, tmp_path / "account", None)
        replies.append(answerings[device % 2].answer(_task(), lambda: node))

    threads = [threading.Thread(target=ask, args=(device,)) for device in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30.0)
    assert [answer_from_records(reply).status for reply in replies] == [Status.RESTING] * 3
    assert most == 1
