"""A device's connection over real sockets, to a stand-in of the SuperLink that forgets nodes and whose wire is cut."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from flwr.proto.control_pb2 import RegisterNodeRequest, RegisterNodeResponse
from flwr.proto.fleet_pb2 import ActivateNodeResponse, PullMessagesRequest, PullMessagesResponse
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest, SendNodeHeartbeatResponse

from fairwave.errors import FederationError
from fairwave.federate.agreement import Agreement, write_agreement
from fairwave.federate.answering import Answering
from fairwave.federate.control_link import register_keys
from fairwave.federate.credentials import Authority, make_device_key
from fairwave.federate.device_file import DeviceFile, DeviceFolder, write_device_file
from fairwave.federate.resident import Resident
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny
from tests.federate.wire import Wire

pytestmark = pytest.mark.faults


class StandIn(ThreadingHTTPServer):
    """Answers as Flower 1.41 does; what it knows of nodes is in its memory alone."""

    daemon_threads = True

    def __init__(self, place: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._trust.load_cert_chain(place / "server.crt", place / "server.key")
        self._numbers = itertools.count(11)
        self.nodes, self.keys = set[int](), set[bytes]()

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        """Shake hands in the connection's own thread."""
        request.settimeout(10.0)
        with contextlib.suppress(OSError), self._trust.wrap_socket(request, server_side=True) as own:
            super().finish_request(own, client_address)

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The code and the content of an answer."""
        match path.rpartition("/")[2]:
            case "activate-node":
                self.nodes.add(node := next(self._numbers))
                return 200, ActivateNodeResponse(node_id=node).SerializeToString()
            case "send-node-heartbeat":
                known = SendNodeHeartbeatRequest.FromString(body).node.node_id in self.nodes
                return 200, SendNodeHeartbeatResponse(success=known).SerializeToString()
            case "pull-messages" if PullMessagesRequest.FromString(body).node.node_id in self.nodes:
                return 200, PullMessagesResponse().SerializeToString()
            case "register-node" if (key := RegisterNodeRequest.FromString(body).public_key) not in self.keys:
                self.keys.add(key)
                return 200, RegisterNodeResponse(node_id=next(self._numbers)).SerializeToString()
            case "register-node":
                return 412, b"Public key already in use"
        return 401, b""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: StandIn

    def do_POST(self) -> None:
        code, content = self.server.answer(self.path, self.rfile.read(int(self.headers["content-length"])))
        self.send_response(code)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *rest: object) -> None:
        pass


@pytest.fixture
def superlink(tmp_path: Path) -> Iterator[StandIn]:
    authority = Authority.make(2)
    authority.write(tmp_path / "ca.crt")
    authority.issue(["localhost", "127.0.0.1"], 1, tmp_path / "server.crt", tmp_path / "server.key")
    with StandIn(tmp_path) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        yield server
        server.shutdown()
        serving.join(5.0)


@pytest.fixture
def wire(superlink: StandIn) -> Iterator[Wire]:
    with Wire(superlink.server_address[1]) as wire:
        yield wire


@pytest.fixture
def said() -> list[str]:
    """What the device says."""
    return []


@pytest.fixture
def device(wire: Wire, said: list[str], tmp_path: Path) -> Iterator[Resident]:
    """A device that reaches the SuperLink by the wire."""
    node = tmp_path / "node-0"
    (node / "agreement").mkdir(parents=True)
    write_agreement(node / "agreement", Agreement(tiny(), Settings()))
    make_device_key(node / "node.key", tmp_path / "0.pub")
    write_device_file(
        node, DeviceFile(device=0, access_point=f"127.0.0.1:{wire.port}", authority=str(tmp_path / "ca.crt"))
    )
    folder = DeviceFolder(node)
    resident = Resident(folder, Answering(folder.agreement), said.append)
    yield resident
    resident.leave()


def test_a_device_comes_back_after_a_handshake_that_is_cut(device: Resident, wire: Wire, said: list[str]) -> None:
    for _ in range(2):  # before it was ever connected, and in the middle
        wire.handshakes_to_cut = 1
        wire.drop()
        device.step()
        assert not device.connected and wire.handshakes_to_cut == 0
        assert ": no connection (" in said[-1] and "trying again" in said[-1]
        device.step()
        assert device.connected and "connected to" in said[-1]
    assert wire.cut == 2


def test_a_device_comes_back_under_another_number_after_the_superlink_has_forgotten_it(
    device: Resident, superlink: StandIn, wire: Wire, said: list[str]
) -> None:
    device.step()
    assert superlink.nodes == {11}
    superlink.nodes.clear()
    wire.down = True
    wire.drop()
    device.step()
    assert not device.connected and ": no connection (" in said[-1]
    wire.down = False
    device.step()
    assert device.connected and superlink.nodes == {12}
    superlink.nodes.clear()  # a restart between two of its questions
    device.step()
    assert not device.connected and "the SuperLink refuses this device (HTTP 401)" in said[-1]
    device.step()
    assert device.connected and superlink.nodes == {13}


def test_keys_that_the_superlink_has_already_do_not_stop_the_others(superlink: StandIn, tmp_path: Path) -> None:
    keys = [tmp_path / f"{number}.pub" for number in range(3)]
    for path in keys:
        make_device_key(path.with_suffix(".key"), path)
    address, authority = f"127.0.0.1:{superlink.server_address[1]}", tmp_path / "ca.crt"
    assert register_keys(address, authority, keys[:2]) == {keys[0]: "11", keys[1]: "12"}
    assert register_keys(address, authority, keys) == {keys[0]: None, keys[1]: None, keys[2]: "13"}
    superlink.answer = lambda path, body: (412, b"no such account")  # type: ignore[method-assign]
    with pytest.raises(FederationError, match="HTTP 412"):  # Flower refuses other things with the same code
        register_keys(address, authority, keys)
