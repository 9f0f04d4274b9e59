"""A resident device that misbehaves when a file says so: python -m tests.federate.saboteur NODE_FOLDER PLANS CLOCK_S

A file in PLANS that is called by the device's number, or by that and a round ("1 round 2", from 0), names what happens
to its next update, or to that of the round; it is removed then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, RecordDict

from fairwave.federate import fleet_link
from fairwave.federate.fleet_link import FleetLink
from fairwave.federate.flower_records import ARRAYS
from fairwave.federate.resident import Resident
from fairwave.federate.residents import Residents

FOLDER, PLANS, CLOCK_S = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
SLOWLY_S = 4.0
"""Pause before each part of a slow upload."""
honest_reply, honest_send, real_time = Resident._reply_to, FleetLink.reply, time.time
HALF = set[int]()
"""Devices whose reply is announced and not sent: none, or this one."""


def _reply_to(self: Resident, message: Message) -> RecordDict:
    what = _planned(message)
    if what == "exit":
        os._exit(1)
    if what == "sleep":
        time.sleep(float(os.environ["SLEEP_S"]))
    content = honest_reply(self, message)
    if what == "nan":
        held = content[ARRAYS]
        content[ARRAYS] = ArrayRecord({n: Array(np.full_like(a.numpy(), np.nan)) for n, a in held.items()})
    HALF.clear()
    if what == "half":
        HALF.add(0)
    if what == "slow":
        _slow_down()
    return content


def _planned(message: Message) -> str:
    device = FOLDER.name.removeprefix("node-")
    for plan in (PLANS / device, PLANS / f"{device} round {message.metadata.group_id}"):
        if message.metadata.message_type == "train.update" and plan.exists():
            what = plan.read_text()
            plan.unlink()
            return what
    return ""


def _send(self: FleetLink, question: Message, content: RecordDict, worked_s: float) -> None:
    if HALF:
        self._client.PushObject = lambda request: None  # announced, and not one part of it sent
    honest_send(self, question, content, worked_s)
    vars(self._client).pop("PushObject", None)


def _slow_down() -> None:
    push = fleet_link.FleetHttpClient.PushObject

    def slowly(self: fleet_link.FleetHttpClient, request: object) -> object:
        time.sleep(SLOWLY_S)
        return push(self, request)

    fleet_link.FleetHttpClient.PushObject = slowly
    threading.Timer(5.0 * SLOWLY_S, lambda: setattr(fleet_link.FleetHttpClient, "PushObject", push)).start()


if __name__ == "__main__":
    Resident._reply_to, FleetLink.reply = _reply_to, _send
    time.time = lambda: real_time() + CLOCK_S
    Residents([FOLDER], lambda line: sys.stdout.write(line + "\n")).run(threading.Event())
