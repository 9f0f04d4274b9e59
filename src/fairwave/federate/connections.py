"""Which node is which device. Nodes come and go and change their numbers; a device is known by its own, and its key."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from flwr.app import ConfigRecord, Message, RecordDict

from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.flower_records import HELLO, Unreadable, value
from fairwave.federate.messaging import MOST_STUCK, Exchanges
from fairwave.federate.protocol import VERSION

GREETING = "query.hello"
_PATIENCE_S = 60.0


class Connections:
    """The devices that are connected."""

    def __init__(
        self,
        exchanges: Exchanges,
        num_devices: int,
        known_keys: KnownKeys | None,
        deadline_s: float,
        log: Callable[..., None],
    ) -> None:
        """With known keys, a device must prove that it holds its key; without, its word is taken."""
        self._exchanges, self._num_devices, self._known_keys, self._log = exchanges, num_devices, known_keys, log
        self._deadline_s = min(deadline_s, _PATIENCE_S)
        self._node_of: dict[int, int] = {}
        self._seen: dict[int, float] = {}
        """When each device was last known to be connected, by the clock."""
        self._refused: set[int] = set()
        self._silent: dict[int, float] = {}
        """When nodes that said nothing may be asked again: each question waits for them."""
        self._second: dict[int, int] = {}
        """Device of every node that came while another was connected as the same one."""
        self._named_stuck = 0
        """The node that was last named as the one whose upload does not end."""

    def update(self) -> dict[int, int]:
        """The node of every device that is connected now; nodes that are new are asked who they are."""
        there = set(self._exchanges.grid.get_node_ids())
        self._read_keys_again()
        for device in [device for device, node in self._node_of.items() if node not in there]:
            self._leave(device)
        self._seen |= dict.fromkeys(self._node_of, time.time())
        self._refused &= there
        # Whoever was second is asked again once the first has gone: it may be the same device after a crash.
        self._second = {node: device for node, device in self._second.items() if device in self._node_of}
        self._silent = {node: until for node, until in self._silent.items() if until > time.monotonic()}
        known = {*self._node_of.values(), *self._refused, *self._second, *self._silent}
        new = self._admissible(sorted(there - known))
        if new:
            question = secrets.token_bytes(16)
            greeting = {node: _greeting(question) for node in new}
            replies = self._exchanges.exchange(greeting, GREETING, "hello", self._deadline_s)
            self._silent |= dict.fromkeys(set(new) - set(replies), time.monotonic() + _PATIENCE_S)
            for node, reply in replies.items():
                if isinstance(reply, Message):
                    self._admit(node, reply, question)
                else:  # it may be the network's fault: it is asked again later
                    self._silent[node] = time.monotonic() + _PATIENCE_S
                    self._log("refused", why="a node whose introduction cannot be read")
        return dict(self._node_of)

    def _read_keys_again(self) -> None:
        """Devices that have lost a key must prove themselves anew; whoever was refused may have one now."""
        if self._known_keys is None:
            return
        lost = self._known_keys.refresh(lambda why: self._log("refused", why=why))
        if lost is not None:
            self._refused.clear()
            self._second.clear()
        for device in set(lost or ()) & set(self._node_of):
            self._leave(device, why="a key of it was revoked")

    def _leave(self, device: int, **more: str) -> None:
        node = self._node_of.pop(device)
        self._log("left", device=device, node=str(node), last_seen=round(self._seen[device], 3), **more)

    def _admissible(self, new: list[int]) -> list[int]:
        """New nodes that may be asked who they are: each could leave a thread that waits, and those are bounded.

        Nodes that are known are asked all the same, so that a federation goes on with those that it has.
        """
        stuck = self._exchanges.stuck()
        room = max(0, MOST_STUCK - len(stuck))
        if len(new) > room and stuck and stuck[0].node != self._named_stuck:
            self._named_stuck = stuck[0].node
            seconds = round(time.monotonic() - stuck[0].begun, 1)
            self._log(
                "too many uploads that do not end", uploads=len(stuck), oldest_node=stuck[0].node, seconds=seconds
            )
        return new[:room]

    def wait_for(self, enough: Callable[[dict[int, int]], bool], wait_s: float) -> dict[int, int]:
        """The same, once there are enough, or when waiting is over."""
        end = time.monotonic() + wait_s
        there = self.update()
        while not enough(there) and time.monotonic() < end:
            time.sleep(min(1.0, wait_s))
            there = self.update()
        return there

    def _admit(self, node: int, reply: Message, question: bytes) -> None:
        if reply.has_error():  # it may be starting: it is asked again
            return
        try:
            device = self._introduced(reply.content, question)
        except Unreadable as error:
            self._refused.add(node)
            self._log("refused", why=str(error))
            return
        if device in self._node_of:
            self._second[node] = device
            self._log("refused", why=f"device {device}: another node is already connected as this device")
            return
        self._node_of[device], self._seen[device] = node, time.time()
        self._log("joined", device=device, node=str(node))

    def _introduced(self, records: RecordDict, question: bytes) -> int:
        fields = records.get(HELLO)
        if not isinstance(fields, ConfigRecord):
            raise Unreadable("a node that does not introduce itself")
        device = value(fields, "partition-id", int)
        if value(fields, "version", int) != VERSION:
            raise Unreadable(f"device {device}: speaks another version of the protocol")
        if not 0 <= device < self._num_devices:
            raise Unreadable(f"device {device}: the scenario has devices 0 to {self._num_devices - 1}")
        signature, keys = value(fields, "signature", bytes), self._known_keys
        if keys is not None and not keys.vouches(device, question, signature):
            raise Unreadable(f"device {device}: no proof that the node holds its key")
        return device


def _greeting(question: bytes) -> RecordDict:
    return RecordDict({HELLO: ConfigRecord({"version": VERSION, "question": question})})
