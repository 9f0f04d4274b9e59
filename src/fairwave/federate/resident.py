"""One resident device: it keeps its connection, its data, its account and its compiled programs in one process.

It asks the access point for work, does it, and asks again. Whatever goes wrong with the network, it tries again for as
long as the program lives, after pauses that grow and are drawn at random, so that a fleet does not return all at once.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from flwr.app import Message, RecordDict

from fairwave.federate.answering import HELLO_TYPE, Answering
from fairwave.federate.device_file import DeviceFolder
from fairwave.federate.device_log import note
from fairwave.federate.fleet_link import HEARTBEAT_S, FleetLink
from fairwave.federate.link_errors import LinkError
from fairwave.federate.resident_status import ConnectionStatus, read_status, write_status

SOON_S = 0.2
"""First pause after a message: the next exchange of a round is often near."""
_PAUSES_GROW, _OFTEN_S = 1.5, 1.0
_SHARE_OF_IDLENESS = 0.05
"""Longest pause, as a share of the time since the last message: a device that is asked often is quick."""
_IDLE_AT_FIRST_S = 60.0
"""A device that has just connected asks as one that has had no message for so long: a fleet may connect at once."""
_FIRST_RETRY_S, _LONGEST_RETRY_S = 1.0, 30.0
_BEAT = 0.8
"""Share of the heartbeat's interval after which the next one is sent."""
_CLOCK_OFF_S = 3.0


class Resident:
    """A device between its messages."""

    def __init__(self, folder: DeviceFolder, answering: Answering, say: Callable[[str], None]) -> None:
        self._folder, self._answering, self._node = folder, answering, folder.node()
        self._say, self._beating = say, threading.Lock()
        self._link: FleetLink | None = None
        before = read_status(self._node.folder)
        self._node_id = None if before is None else before.node
        self._pause_s, self._retries, self._next_beat, self._told_clock = SOON_S, 0, 0.0, False
        self._last_message = 0.0

    @property
    def connected(self) -> bool:
        """Whether the access point can reach it."""
        return self._link is not None

    def step(self) -> float:
        """Connect, or ask for work and do it; returns how many seconds to wait before the next step."""
        try:
            if self._link is None:
                self._connect()
            return self._asked()
        except LinkError as error:
            return self._try_again_after(str(error))
        except Exception as error:  # a device that dies of a bug would have to be started by hand
            note(self._node.folder, "a step failed", error)
            return self._try_again_after(f"internal error ({type(error).__name__}); see {self._node.folder}")

    def beat(self) -> None:
        """Tell the access point that the device is there, if it is time to."""
        with self._beating:
            link = self._link
            if link is None or time.monotonic() < self._next_beat:
                return
            self._next_beat = time.monotonic() + _BEAT * HEARTBEAT_S * random.uniform(0.9, 1.0)
            try:
                link.heartbeat()
                self._write_status(connected=True)
            except LinkError:
                pass  # the next step meets the same trouble, and says so
            except Exception as error:
                note(self._node.folder, "a heartbeat failed", error)

    def leave(self) -> None:
        """Say goodbye; the device can come back at once."""
        if self._link is not None:
            self._link.close(goodbye=True)
            self._link = None
            self._write_status(connected=False)

    def _connect(self) -> None:
        link = FleetLink(self._folder.file.access_point, self._folder.authority, self._folder.key)
        try:
            self._node_id = link.connect(self._node_id)
        except BaseException:
            link.close(goodbye=False)
            raise
        finally:
            self._tell_clock(link.clock_offset_s)
        self._link, self._retries, self._pause_s = link, 0, SOON_S
        self._last_message = time.monotonic() - _IDLE_AT_FIRST_S
        self._next_beat = time.monotonic() + _BEAT * HEARTBEAT_S
        self._write_status(connected=True)
        self._say(f"device {self._node.device}: connected to {self._folder.file.access_point}")

    def _asked(self) -> float:
        assert self._link is not None
        message = self._link.receive()
        if message is None:
            pause_s, idle_s = self._pause_s, time.monotonic() - self._last_message
            longest_s = min(max(_OFTEN_S, _SHARE_OF_IDLENESS * idle_s), self._folder.file.poll_s)
            self._pause_s = min(_PAUSES_GROW * pause_s, longest_s)
            return pause_s * random.uniform(0.8, 1.2)
        begun = time.monotonic()
        content = self._reply_to(message)
        self._link.reply(message, content, time.monotonic() - begun)
        self._pause_s, self._last_message = SOON_S, time.monotonic()
        return SOON_S

    def _reply_to(self, message: Message) -> RecordDict:
        if message.metadata.message_type == HELLO_TYPE:
            return self._answering.introduction(message.content, lambda: self._node)
        return self._answering.answer(message.content, lambda: self._node)

    def _try_again_after(self, why: str) -> float:
        if self._link is not None:
            self._link.close(goodbye=False)
            self._link = None
        longest_s = min(_FIRST_RETRY_S * 2.0**self._retries, _LONGEST_RETRY_S)
        pause_s = random.uniform(0.5, 1.0) * longest_s
        self._retries += 1
        self._write_status(connected=False)
        self._say(f"device {self._node.device}: {why}; trying again in {pause_s:.0f} s")
        return pause_s

    def _tell_clock(self, offset_s: float) -> None:
        off = abs(offset_s) > _CLOCK_OFF_S
        if off and not self._told_clock:
            where = "behind" if offset_s > 0 else "ahead of"
            self._say(
                f"device {self._node.device}: this machine's clock is {abs(offset_s):.0f} s {where} that of the access "
                "point, which the device uses; set the clock"
            )
        self._told_clock = off

    def _write_status(self, *, connected: bool) -> None:
        try:
            write_status(self._node.folder, ConnectionStatus(connected, self._node_id, time.time()))
        except OSError as error:  # a full disk must not cut the connection
            note(self._node.folder, "the connection's status could not be written", error)
