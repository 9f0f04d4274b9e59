"""Who may speak for a device: its number and its key, never the number of the node that it happens to be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.errors import FederationError
from fairwave.federate.client_app import app_of
from fairwave.federate.connections import Connections
from fairwave.federate.credentials import make_device_key
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.flower_records import HELLO
from fairwave.federate.in_process import LocalGrid, identity
from fairwave.federate.messaging import Exchanges
from fairwave.federate.protocol import VERSION
from tests.federate.parties import REPEATABLE, Agreement, tiny


@pytest.fixture(autouse=True)
def _inside_a_task() -> Iterator[None]:
    with identity():
        yield


class Crowd(LocalGrid):
    """Nodes that come and go; each claims to be a device, perhaps with a key."""

    def __init__(self, app: ClientApp, claims: dict[int, dict[str, object]]) -> None:
        super().__init__(app, 0)
        self.claims = claims
        self._contexts = {node: _context(node, config) for node, config in claims.items()}
        self.there = set(claims)

    def get_node_ids(self) -> list[int]:
        return sorted(self.there)


def _context(node: int, config: dict[str, object]) -> Context:
    return Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})


def _app() -> ClientApp:
    return app_of(lambda: Agreement(tiny(), REPEATABLE), Path("unused"))


def _keys(folder: Path, count: int) -> list[Path]:
    (folder / "known_keys").mkdir()
    for device in range(count):
        make_device_key(folder / f"{device}.key", folder / "known_keys" / f"{device}.pub")
    return [folder / f"{device}.key" for device in range(count)]


def test_the_right_key_is_admitted_and_every_other_refused(tmp_path: Path) -> None:
    keys = _keys(tmp_path, 3)
    said: list[str] = []
    crowd = Crowd(
        _app(),
        {
            11: {"partition-id": 0, "key": str(keys[0])},
            12: {"partition-id": 1, "key": str(keys[0])},  # somebody else's
            13: {"partition-id": 2},
            14: {"partition-id": 3, "key": str(keys[1])},
            15: {"partition-id": -1, "key": str(keys[1])},
        },
    )
    connections = Connections(
        Exchanges(crowd),
        3,
        KnownKeys(tmp_path / "known_keys"),
        5.0,
        lambda event, **more: said.append(f"{event} {more}"),
    )
    assert connections.update() == {0: 11}
    assert sum("no proof that the node holds its key" in line for line in said) == 2
    assert sum("the scenario has devices 0 to 2" in line for line in said) == 2
    said.clear()
    assert connections.update() == {0: 11}
    assert said == []  # nobody is asked twice


def test_a_signature_for_another_question_is_worthless(tmp_path: Path) -> None:
    keys = _keys(tmp_path, 1)
    recorded: list[Message] = []

    class Replays(ClientApp):
        def __call__(self, message: Message, context: Context) -> Message:
            if not recorded:
                recorded.append(_app()(message, context))
                return recorded[0]
            return Message(recorded[0].content, reply_to=message)

    crowd = Crowd(Replays(), {21: {"partition-id": 0, "key": str(keys[0])}})
    known_keys = KnownKeys(tmp_path / "known_keys")
    assert Connections(Exchanges(crowd), 1, known_keys, 5.0, lambda event, **more: None).update() == {0: 21}
    assert Connections(Exchanges(crowd), 1, known_keys, 5.0, lambda event, **more: None).update() == {}


def test_a_device_comes_back_under_another_node() -> None:
    crowd = Crowd(_app(), {31: {"partition-id": 0}, 32: {"partition-id": 0}})
    crowd.there = {31}
    said: list[str] = []
    connections = Connections(Exchanges(crowd), 1, None, 5.0, lambda event, **more: said.append(f"{event} {more}"))
    assert connections.update() == {0: 31}
    crowd.there = {31, 32}
    assert connections.update() == {0: 31}
    assert "another node is already connected as this device" in said[-1]
    assert connections.update() == {0: 31}
    assert len(said) == 2  # it is not asked in every round
    crowd.there = {32}
    assert connections.update() == {0: 32}
    assert [line.split()[0] for line in said[2:]] == ["left", "joined"]


def test_a_device_that_goes_leaves_a_trace() -> None:
    crowd = Crowd(_app(), {33: {"partition-id": 0}})
    said: list[tuple[str, dict[str, object]]] = []
    connections = Connections(Exchanges(crowd), 1, None, 5.0, lambda event, **more: said.append((event, more)))
    begun = time.time()
    connections.update()
    crowd.there = set()
    assert connections.update() == {}
    assert said[0] == ("joined", {"device": 0, "node": "33"})
    event, more = said[1]
    assert event == "left" and more["node"] == "33" and more["device"] == 0
    assert begun - 0.01 <= float(str(more["last_seen"])) <= time.time() + 0.01
    assert connections.update() == {} and len(said) == 2  # it goes once


class Watched:
    """The connections of a crowd with keys, and what they said."""

    def __init__(self, folder: Path, claims: dict[int, dict[str, object]]) -> None:
        self.crowd, self.said = Crowd(_app(), claims), list[str]()
        self.folder = folder / "known_keys"
        self.connections = Connections(
            Exchanges(self.crowd),
            2,
            KnownKeys(self.folder),
            5.0,
            lambda event, **more: self.said.append(f"{event} {more}"),
        )

    def update(self) -> dict[int, int]:
        self.said.clear()
        return self.connections.update()


def test_two_keys_are_good_while_a_device_changes_from_one_to_the_other(tmp_path: Path) -> None:
    old, _ = _keys(tmp_path, 2)
    make_device_key(tmp_path / "new.key", tmp_path / "known_keys" / "0-2.pub")
    claims = {61: {"partition-id": 0, "key": str(old)}, 62: {"partition-id": 0, "key": str(tmp_path / "new.key")}}
    there = Watched(tmp_path, {**claims, 63: {"partition-id": 1, "key": str(tmp_path / "new.key")}})
    there.crowd.there = {61}
    assert there.update() == {0: 61}
    there.crowd.there = {62, 63}  # the second key is device 0's, and no other's
    assert there.update() == {0: 62}
    assert any("device 1: no proof that the node holds its key" in line for line in there.said)
    there.crowd.there = {61}
    assert there.update() == {0: 61}
    (tmp_path / "known_keys" / "0.pub").unlink()
    assert there.update() == {}
    assert "left" in there.said[0] and "a key of it was revoked" in there.said[0]
    assert "no proof that the node holds its key" in there.said[1]
    there.crowd.there = {62}
    assert there.update() == {0: 62}


def test_a_key_is_revoked_and_another_added_while_a_federation_runs(tmp_path: Path) -> None:
    first, second = _keys(tmp_path, 2)
    there = Watched(tmp_path, {71: {"partition-id": 0, "key": str(first)}, 72: {"partition-id": 1, "key": str(second)}})
    kept = (tmp_path / "known_keys" / "1.pub").read_bytes()
    (tmp_path / "known_keys" / "1.pub").unlink()
    assert there.update() == {0: 71}
    (tmp_path / "known_keys" / "1.pub").write_bytes(kept)
    assert there.update() == {0: 71, 1: 72}
    assert there.update() == {0: 71, 1: 72} and there.said == []
    (tmp_path / "known_keys" / "notes.pub").write_text("not a key")
    assert there.update() == {0: 71, 1: 72}  # a stray file does not end a federation
    assert any("notes.pub: is not called by a device's number" in line for line in there.said)
    for path in (tmp_path / "known_keys").iterdir():
        path.unlink()
    assert there.update() == {}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("notes.pub", "ssh-ed25519 AAAA", r"notes.pub: is not called by a device's number; rename it to NUMBER.pub"),
        ("1-x.pub", "ssh-ed25519 AAAA", r"1-x.pub: is not called by a device's number"),
        ("-1.pub", "ssh-ed25519 AAAA", r"-1.pub: is not called by a device's number"),
        ("1.pub", "half a key", r"1.pub: no public key of a device; restore it"),
        ("1.pub", "", r"1.pub: no public key of a device"),
    ],
)
def test_a_stray_file_among_the_keys_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    _keys(tmp_path, 1)
    (tmp_path / "known_keys" / name).write_text(text)
    with pytest.raises(FederationError, match=said):
        KnownKeys(tmp_path / "known_keys")


@pytest.mark.parametrize(
    "told",
    [{}, {"version": VERSION}, {"version": 0, "partition-id": 0}, {"version": VERSION, "partition-id": "0"}],
)
def test_a_node_that_does_not_introduce_itself_properly_is_refused(told: dict[str, object]) -> None:
    class Rude(ClientApp):
        def __call__(self, message: Message, context: Context) -> Message:
            content = RecordDict({HELLO: ConfigRecord(told)} if told else {})
            return Message(content, reply_to=message)

    said: list[str] = []
    connections = Connections(
        Exchanges(Crowd(Rude(), {41: {}})), 1, None, 5.0, lambda event, **more: said.append(event)
    )
    assert connections.update() == {}
    assert said == ["refused"]


def test_a_node_that_cannot_answer_yet_is_asked_again() -> None:
    tries: list[int] = []

    class Slow(ClientApp):
        def __call__(self, message: Message, context: Context) -> Message:
            tries.append(1)
            if len(tries) == 1:
                raise RuntimeError
            return _app()(message, context)

    connections = Connections(
        Exchanges(Crowd(Slow(), {51: {"partition-id": 0}})), 1, None, 5.0, lambda event, **more: None
    )
    assert connections.update() == {}
    assert connections.update() == {0: 51}
