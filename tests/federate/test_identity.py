"""Who may speak for a device: its number and its key, never the number of the node that it happens to be."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("notes.pub", "ssh-ed25519 AAAA", r"notes.pub: is not called by a device's number; rename it to NUMBER.pub"),
        ("-1.pub", "ssh-ed25519 AAAA", r"-1.pub: is not called by a device's number"),
        ("1.pub", "half a key", r"1.pub: no public key of a device; bring it back"),
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
