"""A resident device between its messages: it polls, keeps itself known, and tries again for ever."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import flwr
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message.message import make_message
from flwr.app.metadata import Metadata
from flwr.supercore.inflatable import inflatable_object, inflatable_utils
from flwr.supernode.fleet_http_client import FleetHttpClient

from fairwave.errors import ScenarioError, StoreError
from fairwave.federate import resident
from fairwave.federate.agreement import Agreement, write_agreement
from fairwave.federate.answering import HELLO_TYPE, Answering
from fairwave.federate.credentials import Authority, make_device_key
from fairwave.federate.device_file import DeviceFile, DeviceFolder, read_device_file, write_device_file
from fairwave.federate.fleet_link import FleetLink, _Signer
from fairwave.federate.flower_records import HELLO
from fairwave.federate.link_errors import LinkError, Trouble
from fairwave.federate.protocol import VERSION
from fairwave.federate.resident import Resident
from fairwave.federate.resident_status import read_status
from fairwave.federate.residents import Residents
from fairwave.federate.settings import Settings
from fairwave.runs.database import locked
from tests.federate.parties import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A device's folder, as `federate init` writes it."""
    node = tmp_path / "node-0"
    (node / "agreement").mkdir(parents=True)
    write_agreement(node / "agreement", Agreement(tiny(), Settings()))
    make_device_key(node / "node.key", tmp_path / "0.pub")
    Authority.make(1).write(node / "ca.crt")
    write_device_file(node, DeviceFile(device=0, access_point="127.0.0.1:9"))
    return node


class FakeLink:
    """A connection that does as a test says."""

    clock_offset_s = 0.0
    trouble: Trouble | None = None
    messages: list[Message]

    def __init__(self, *rest: object) -> None:
        self.known: list[int | None] = []
        self.replies: list[RecordDict] = []
        self.beats, self.goodbyes, self.messages = 0, 0, []

    def _fail(self) -> None:
        if self.trouble is not None:
            raise LinkError(self.trouble, "the access point: something is the matter")

    def connect(self, known: int | None) -> int:
        self.known.append(known)
        self._fail()
        return 77

    def heartbeat(self) -> None:
        self.beats += 1
        self._fail()

    def receive(self) -> Message | None:
        self._fail()
        return self.messages.pop() if self.messages else None

    def reply(self, question: Message, content: RecordDict, worked_s: float) -> None:
        self.replies.append(content)

    def close(self, *, goodbye: bool) -> None:
        self.goodbyes += goodbye


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLink]:
    fake = FakeLink()
    monkeypatch.setattr(resident, "FleetLink", lambda *rest: fake)
    yield fake


def _resident(folder: Path, said: Callable[[str], None] = lambda line: None) -> Resident:
    place = DeviceFolder(folder)
    return Resident(place, Answering(place.agreement), said)


def _message() -> Message:
    content = RecordDict({HELLO: ConfigRecord({"version": VERSION, "question": b"who"})})
    metadata = Metadata(1, "a", 1, 77, "", "hello", time.time(), 60.0, HELLO_TYPE)
    return make_message(metadata, content=content)


def test_it_answers_and_asks_again_soon_and_then_less_often(
    folder: Path, link: FakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(resident.time, "monotonic", lambda: now[0])
    device = _resident(folder)
    link.messages = [_message()]
    assert device.step() == resident.SOON_S
    assert link.replies[0][HELLO]["partition-id"] == 0
    assert len(link.replies[0][HELLO]["signature"]) > 0
    pauses = [device.step() for _ in range(12)]
    assert pauses[0] < 0.3
    assert 0.8 <= pauses[-1] <= 1.2
    for idle_s, longest_s in ((100.0, 5.0), (1_000.0, 15.0)):
        now[0] = 1_000.0 + idle_s
        pauses = [device.step() for _ in range(12)]
        assert 0.8 * longest_s <= pauses[-1] <= 1.2 * longest_s
    assert len(set(pauses[-4:])) == 4  # a fleet does not ask in step


def test_it_tries_again_for_ever_with_growing_random_pauses_and_comes_back(folder: Path, link: FakeLink) -> None:
    said: list[str] = []
    device = _resident(folder, said.append)
    device.step()
    for trouble in Trouble:
        link.trouble = trouble
        pauses = [device.step() for _ in range(12)]
        assert not device.connected
        assert pauses[0] <= 1.0 and max(pauses) <= 30.0 and min(pauses[6:]) >= 15.0
        link.trouble = None
        device.step()
        assert device.connected
    assert link.known[0] is None and set(link.known[1:]) == {77}  # it comes back as the node that it was
    assert "device 0: the access point: something is the matter; trying again in" in said[1]


def test_a_bug_in_a_step_does_not_end_the_device(folder: Path, link: FakeLink, monkeypatch: pytest.MonkeyPatch) -> None:
    device = _resident(folder)
    link.messages = [_message()]
    monkeypatch.setattr(link, "reply", lambda *rest: 1 / 0)
    assert device.step() > 0.0
    assert "ZeroDivisionError" in (folder / "home" / "device-0" / "device.log").read_text()
    device.step()
    assert device.connected


def test_heartbeats_are_sent_when_they_are_due_and_a_failure_is_left_to_the_next_step(
    folder: Path, link: FakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(resident.time, "monotonic", lambda: now[0])
    device = _resident(folder)
    device.step()
    device.beat()
    assert link.beats == 0
    now[0] = 24.1
    link.trouble = Trouble.UNREACHABLE
    device.beat()
    device.beat()
    assert link.beats == 1


def test_its_status_is_there_for_others_and_for_its_next_start(folder: Path, link: FakeLink) -> None:
    device = _resident(folder)
    device.step()
    status = read_status(folder / "home" / "device-0")
    assert status is not None and status.connected and status.node == 77
    again = _resident(folder)
    again.step()
    assert link.known == [None, 77]
    device.leave()
    assert link.goodbyes == 1
    status = read_status(folder / "home" / "device-0")
    assert status is not None and not status.connected
    for content in ("", "{", "[]", '{"node": -1, "connected": true, "time": 0}', '{"node": "x"}'):
        (folder / "home" / "device-0" / "connection.json").write_text(content)
        assert read_status(folder / "home" / "device-0") is None


def test_one_program_per_device(folder: Path) -> None:
    (folder / "home" / "device-0").mkdir(parents=True)
    end = threading.Event()
    end.set()
    with locked(folder / "home" / "device-0"), pytest.raises(StoreError, match="another fairwave is running it"):
        Residents([folder]).run(end)


def test_a_clock_that_is_wrong_is_put_right_by_the_access_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = FleetLink("127.0.0.1:9", folder / "ca.crt", folder / "node.key")
    signer: _Signer = link._signer
    monkeypatch.setattr(time, "time", lambda: 1_000_000_010.0)
    signer._keep_time("Sun, 09 Sep 2001 01:46:40 GMT")  # 1,000,000,000
    assert signer.now() == pytest.approx(1_000_000_000.5)
    signer._keep_time("Sun, 09 Sep 2001 01:46:41 GMT")  # within a slow answer: no change
    assert signer.now() == pytest.approx(1_000_000_000.5)
    for nothing in (None, "", "yesterday"):
        signer._keep_time(nothing)
    assert link.clock_offset_s == pytest.approx(-9.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"acess_point": "x:1"}, "access_point"),
        ({"access_point": "http://ap:1"}, "access_point"),
        ({"budget_epsilon": 8.0}, "budget_delta"),
        ({"device": -1}, "device"),
        ({"poll_s": 0.0}, "poll_s"),
    ],
)
def test_a_mistake_in_the_file_is_named(folder: Path, change: dict[str, object], words: str) -> None:
    held = json.loads(read_device_file(folder).model_dump_json(exclude_none=True)) | change
    (folder / "device.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in held.items()))
    with pytest.raises(ScenarioError, match=words):
        read_device_file(folder)


def test_what_is_used_of_flower_is_as_it_was() -> None:
    """Modules that Flower does not document may change with any version; then this is the place to look at first."""
    assert flwr.__version__.startswith("1.41.")
    assert list(inspect.signature(FleetHttpClient.from_server_address).parameters) == [
        *("server_address", "insecure", "root_certificates", "interceptors", "retry_invoker"),
    ]
    for name in ("ActivateNode", "DeactivateNode", "SendNodeHeartbeat", "PullMessages", "PushMessages"):
        assert list(inspect.signature(getattr(FleetHttpClient, name)).parameters) == ["self", "request"]
    for name in ("PullObject", "PushObject", "ConfirmMessageReceived"):
        assert list(inspect.signature(getattr(FleetHttpClient, name)).parameters) == ["self", "request"]
    assert next(iter(inspect.signature(inflatable_utils.inflate_object_from_contents).parameters)) == "object_id"
    assert list(inspect.signature(inflatable_object.get_object_tree).parameters) == ["obj"]
    pause = inspect.signature(inflatable_utils.pull_objects).parameters["initial_backoff"]
    assert pause.kind is inspect.Parameter.KEYWORD_ONLY


PARENT = """
import sys, time
from pathlib import Path
from fairwave.federate.agreement import Agreement
from fairwave.federate.loopback import Loopback
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny

class Asleep(Loopback):
    def _prepare(self):
        (self.secrets / "node.key").write_text("private")

    def start_superlink(self):
        self.superlink = self._started(["/bin/sleep", "60"], "superlink.log")

    def start_node(self, device):
        self.nodes[device] = self._started(["/bin/sleep", "60"], "node.log")

with Asleep(Agreement(tiny(), Settings()), Path(sys.argv[1]), "test") as network:
    print(network.superlink.pid, *(node.pid for node in network.nodes.values()), flush=True)
    time.sleep(60)
"""


def test_a_killed_program_leaves_neither_programs_nor_keys(tmp_path: Path) -> None:
    """`federate local`, with programs that only sleep in the place of the SuperLink and three devices."""
    temporary, own = tmp_path / "temporary", {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    temporary.mkdir()
    command = [sys.executable, "-c", PARENT, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as parent:
        assert parent.stdout is not None
        programs = [int(word) for word in parent.stdout.readline().split()]
        assert len(programs) == 4 and len(list(temporary.rglob("node.key"))) == 1
        os.kill(parent.pid, signal.SIGKILL)
    end = time.monotonic() + 30.0
    while time.monotonic() < end and (
        any(temporary.iterdir()) or any(Path(f"/proc/{pid}").exists() for pid in programs)
    ):
        time.sleep(0.05)
    assert not list(temporary.iterdir())
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in programs)
